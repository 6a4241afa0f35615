"""What a newcomer meets in the first hour, typed as a newcomer types it: in this process."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.conftest import lesson_text, write
from vault_index.entrypoints.cli import main
from vault_index.vault import Vault

MakeVault = Callable[..., Vault]
HEAP = lesson_text("Raise the heap", "When the build dies, raise the heap.")


def lessons(*words: str | Path, stdin: str = "", code: int = 0) -> Result:
    """Type `lessons ...` in the current folder and check how it ends."""
    result = CliRunner().invoke(main, [str(word) for word in words], input=stdin)
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def team(make_vault: MakeVault, monkeypatch: pytest.MonkeyPatch) -> Vault:
    """A vault with one lesson, which is the current folder; it needs no model."""
    vault = make_vault({"ops/heap.md": HEAP})
    monkeypatch.chdir(vault.root)
    monkeypatch.setenv("LESSONS_EMBEDDER", "none")
    return vault


# edit


def program(folder: Path, name: str, text: str) -> Path:
    """Write an executable shell script."""
    file = write(folder / name, f"#!/bin/sh\n{text}\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return file


@pytest.mark.parametrize("git_editor", [None, "true", ":"])
def test_edit_opens_vi_where_no_editor_is_named(
    team: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, git_editor: str | None
) -> None:
    program(tmp_path / "bin", "vi", 'echo "opened $1" > "$HOME/opened"')
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    for name in ("VISUAL", "EDITOR"):
        monkeypatch.delenv(name, raising=False)
    if git_editor:
        monkeypatch.setenv("GIT_EDITOR", git_editor)
    lessons("edit", "heap")
    opened = (tmp_path / "home" / "opened").read_text("utf-8")
    assert opened == f"opened {team.root / 'lessons/ops/heap.md'}\n"


def test_edit_without_any_editor_says_what_to_set(
    team: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("VISUAL", "EDITOR"):
        monkeypatch.delenv(name, raising=False)
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    for name in ("git", "env"):
        (bin_folder / name).symlink_to(Path("/usr/bin") / name)
    monkeypatch.setenv("PATH", str(bin_folder))
    ended = lessons("edit", "heap", code=1)
    assert ended.stderr.endswith(
        "Error: no editor is named and vi is not installed\n"
        "Try: set EDITOR to your editor, for example: export EDITOR=nano\n"
    )
