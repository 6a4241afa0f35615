"""The README's commands at terminals of 80 and 40 columns, without colour, dumb, and in a pipe."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import re
import shlex
import signal
import subprocess

import pytest

from tests.support import documents
from tests.support.commands import BIN, run
from tests.support.files import MakeVault, commit, lesson_text, write
from vault_index import open_vault
from vault_index.entrypoints.cli import main, output
from vault_index.index import reconcile
from vault_index.vault import Vault

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
LONG = "A title that is longer than any terminal of these is wide: " * 3
# what a lesson says is shown as it stands there, as is the very text that a model would be sent
BODIES = (
    *("lessons show", "lessons recall", "lessons review list "),
    *("lessons ask", "lessons learn --commit HEAD --dry-run --show"),
)
NOT_HERE = ("install", "uninstall", "model", "sync", "index --rebuild", "watch", "git", "eval",
            "init", "journal forget", "review",  # these ask
            "mcp --tools", "serve")  # an agent, or a client, speaks with these  # fmt: skip


def assert_fits(said: str, columns: int) -> None:
    """Check that no line is wider than the terminal, but for one word, such as a path to be copied."""
    for line in re.split(r"[\n\r]", ESCAPE.sub("", said)):
        is_one_word = len(line.split()) == 1
        assert output.columns(line) <= columns or is_one_word, line


@pytest.fixture
def team(make_vault: MakeVault, text_only: None) -> Vault:
    deploy = "Staging deploys need the VPN"
    files = {
        "devops/deployment/staging-deploys-need-the-vpn.md": lesson_text(deploy, "Set VPN=1."),
        "devops/long.md": lesson_text(LONG, LONG),
        "ops/wide.md": lesson_text("広い" * 60, "Text."),
        "ops/heap.md": lesson_text("Heap", "Raise it."),
        "bad.md": "---\ntitle: [x\n---\nText.\n",
    }
    vault = make_vault(files)
    write(vault.root / "CLAUDE.md", "# Rules\n\n- Never deploy on a Friday, nobody is there.\n")
    commit(vault.root)
    reconcile.sync(open_vault(vault.root))
    return vault


def commands() -> list[str]:
    found = [one for one in documents.commands() if one.startswith("lessons ")]
    found = [one for one in found if not one.removeprefix("lessons ").startswith(NOT_HERE)]
    more = ["lessons --help", "lessons search --help", "lessons nonsense", "lessons show nothing"]
    return [*dict.fromkeys(found), *more, "lessons list --json", "lessons index"]


class Screen(io.StringIO):
    """A stream that takes itself for a terminal."""

    def isatty(self) -> bool:
        return True


def rendered(command: str, columns: int, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return what a command prints at a terminal of some columns, in this process."""
    screen = Screen()
    monkeypatch.setenv("COLUMNS", str(columns))  # as a shell exports it
    with (
        contextlib.redirect_stdout(screen),
        contextlib.redirect_stderr(screen),
        pytest.raises(SystemExit),
    ):
        main(shlex.split(command)[1:])
    return screen.getvalue()


@pytest.mark.slow
def test_no_line_is_wider_than_the_terminal(team: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(team.root)
    monkeypatch.setenv("EDITOR", "true")
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert "…\x1b" in rendered("lessons list", 40, monkeypatch)  # it takes the screen for one
    for number, command in enumerate(commands()):
        columns = (80, 40)[number % 2]
        said = rendered(command, columns, monkeypatch)
        assert "Traceback" not in said
        if not command.startswith(BODIES) and "--json" not in command and "--help" not in command:
            assert_fits(said, columns)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_no_escape_where_none_is_wanted(
    team: Vault, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.chdir(team.root)
    assert "\x1b[1m" in rendered("lessons show heap", 80, monkeypatch)
    monkeypatch.setenv(name, value)
    words = "list|categories|search deploy|show heap|check|index|status|log heap"
    for command in words.split("|"):
        write(team.lessons_dir / "ops/new.md", lesson_text("New", command))  # so that a bar is due
        said = rendered(f"lessons {command}", 80, monkeypatch)
        assert "\x1b" not in said
        assert "Traceback" not in said


# where hooks would be silent


@pytest.mark.slow
def test_search_marks_where_hooks_would_be_silent(
    team: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(team.root)
    (team.lessons_dir / "bad.md").unlink()
    asked = "zebra quota giraffe tariff walrus ledger"
    for number, words in enumerate([asked, "zebra quota", "zebra"]):
        text = f"{words} " * (3 - number) + "other words of the lesson " * 40 * number
        write(team.lessons_dir / f"ops/z{number}.md", lesson_text(f"Z {number}", text))
    answer = run("lessons", "search", asked, "--json", cwd=team.root).json
    assert [hit["injected"] for hit in answer["hits"]] == [True, False, False]
    lines = ESCAPE.sub("", rendered(f"lessons search {asked}", 80, monkeypatch)).splitlines()
    at = [line.startswith("--- below the floor:") for line in lines].index(True)
    assert [line[:2] for line in lines[:at] if line[:1].isdigit()] == ["1."]
    assert [line[:2] for line in lines[at:] if line[:1].isdigit()] == ["2.", "3."]
    assert "below the floor" not in run("lessons", "search", asked, cwd=team.root).out


# lines


@pytest.mark.parametrize(
    ("line", "most", "cut"),
    [
        ("short", 20, "short"),
        ("x" * 21, 20, "x" * 19 + "…"),
        ("x" * 20, 20, "x" * 20),
        ("x" * 99, None, "x" * 99),
        ("広" * 11, 20, "広" * 9 + "…"),
        ("\x1b[1m" + "x" * 30 + "\x1b[0m tail", 20, "\x1b[1m" + "x" * 19 + "…\x1b[0m"),
        ("e\u0301" * 20, 20, "e\u0301" * 20),
    ],
)
def test_clip(line: str, most: int | None, cut: str) -> None:
    assert output.clip(line, most) == cut


@pytest.mark.parametrize(
    ("line", "indent", "broken"),
    [
        ("one two three four five six", 2, "one two three four\n  five six"),
        ("status     /a/path/that/is/one/word and more", 4,
         "status\n    /a/path/that/is/one/word\n    and more"),
        ("x" * 50, 0, "x" * 50),
    ],
)  # fmt: skip
def test_wrap(line: str, indent: int, broken: str) -> None:
    assert output.wrap(line, 20, indent) == broken
    assert output.wrap(line, None, indent) == line


@pytest.mark.slow
def test_a_server_that_waits_for_an_agent_says_so_to_a_person(team: Vault) -> None:
    own, its = pty.openpty()
    command = [str(BIN / "lessons"), "mcp"]
    with subprocess.Popen(command, stdin=its, stdout=its, stderr=its, cwd=team.root) as process:
        said = b""
        while b"claude mcp add lessons" not in said:
            said += os.read(own, 65536)
        process.send_signal(signal.SIGINT)
    assert process.returncode == -signal.SIGINT
    os.close(own)
    os.close(its)


def test_json_keeps_every_character(capsys: pytest.CaptureFixture[str]) -> None:
    value = "\x1b]52;c;ZXZpbA==\x07\x9b31m\u202e\u2066\r\x7f\u2028\U000e0041\u200d\ud800ä\n"
    output.json([value])
    printed = capsys.readouterr().out
    assert json.loads(printed) == [value]
    assert re.fullmatch(r"[ -~\n]*ä[ -~\n]*", printed)


def test_a_style_is_ours_and_its_text_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    output.say("a\nb\x1b[0m", output.styled("c\x1b]0;t\x07", bold=True))
    assert capsys.readouterr().out == "a\\nb\\x1b[0mc\\x1b]0;t\\x07\n"
