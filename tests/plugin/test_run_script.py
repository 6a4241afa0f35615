"""The plugin's script finds the installed program and, where it is missing, says so once."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.support.files import write
from tests.support.places import PLUGIN

SCRIPT = PLUGIN / "run.sh"
PROGRAM = '#!/bin/sh\necho "$0 $*"\ncat\n'  # says what was run, and the event that it was sent


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home whose path a careless script would split."""
    home = tmp_path / "a home: 'with' $everything"
    home.mkdir()
    return home


def add_program(folder: Path) -> Path:
    """Add both programs to a folder."""
    for name in ("lessons", "lessons-hook"):
        write(folder / name, PROGRAM).chmod(0o755)
    return folder


def script(mode: str, folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run the script in a folder, which is the home, too, unless another is named."""
    return subprocess.run(
        ["sh", SCRIPT, mode], cwd=folder, input='{"prompt": "x"}',
        env={"HOME": str(folder), "PATH": "/usr/bin:/bin", **env},
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


PLACES = {
    "uv's folder of programs": ("bin", "UV_TOOL_BIN_DIR"),
    "pipx's folder of programs": ("bin", "PIPX_BIN_DIR"),
    "the XDG folder of programs": ("bin", "XDG_BIN_HOME"),
    "pip install --user": (".local/bin", ""),
    "uv's environments": (".local/share/uv/tools/lessons-vault/bin", ""),
    "uv's environments, moved": ("tools/lessons-vault/bin", "UV_TOOL_DIR"),
    "pipx's environments": (".local/share/pipx/venvs/lessons-vault/bin", ""),
    "pipx's environments, moved": ("pipx/venvs/lessons-vault/bin", "PIPX_HOME"),
    "pipx's environments of before": (".local/pipx/venvs/lessons-vault/bin", ""),
    "the data folder, moved": ("data/uv/tools/lessons-vault/bin", "XDG_DATA_HOME"),
}


@pytest.mark.parametrize("place", PLACES)
def test_the_program_is_where_its_installer_puts_it(home: Path, place: str) -> None:
    below, variable = PLACES[place]
    folder = add_program(home / below)
    first = below.split("/")[0]
    env = {variable: str(home / first)} if variable else {}
    ran = script("prompt", home, **env)
    assert ran.stdout == f'{folder}/lessons-hook \n{{"prompt": "x"}}'
    assert script("mcp", home, **env).stdout.startswith(f"{folder}/lessons mcp\n")


def test_the_path_comes_first(home: Path, tmp_path: Path) -> None:
    add_program(home / ".local/bin")
    folder = add_program(tmp_path / "on the path")
    ran = script("prompt", home, PATH=f"/usr/bin:{folder}:/bin")
    assert ran.stdout.startswith(f"{folder}/lessons-hook")


@pytest.mark.parametrize("entry", ["", ".", "bin"])
def test_nothing_of_the_current_folder_is_run(home: Path, tmp_path: Path, entry: str) -> None:
    """A cloned repository may have a file of that name."""
    project = tmp_path / "project"
    add_program(project / entry)
    ran = script("prompt", project, HOME=str(home), PATH=f"{entry}:/usr/bin:/bin")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


def test_a_missing_program_is_named_once_at_a_start_and_again_when_it_went_missing_again(
    home: Path,
) -> None:
    data = {"CLAUDE_PLUGIN_DATA": str(home / "plugins/data")}
    assert script("prompt", home, **data).stdout == ""
    first = script("start", home, **data)
    assert (first.returncode, first.stderr) == (0, "")
    (message,) = json.loads(first.stdout).values()
    assert json.loads(first.stdout) == {"systemMessage": message}
    assert "uv tool install ." in message
    assert "\n" not in message
    for mode in ("start", "prompt", "end", "start"):
        again = script(mode, home, **data)
        assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
    folder = add_program(home / ".local/bin")
    assert "lessons-hook" in script("start", home, **data).stdout
    for name in ("lessons", "lessons-hook"):
        (folder / name).unlink()
    assert script("start", home, **data).stdout == first.stdout


def test_the_end_of_a_turn_starts_a_program_only_where_sessions_are_recorded(home: Path) -> None:
    add_program(home / ".local/bin")
    assert script("end", home).stdout == ""
    recorded = write(home / ".lessons/journal/recorded", "")  # `lessons uninstall` leaves it empty
    assert script("end", home).stdout == ""
    recorded.write_text("*\n")
    assert "lessons-hook" in script("end", home).stdout
    assert "lessons-hook" in script("end", home, LESSONS_HOME="~/elsewhere").stdout
