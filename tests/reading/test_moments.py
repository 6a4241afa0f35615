"""Events as moments: what failed without a status that says so, and what a terminal would not show."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.conversations import SESSION, Talk
from vault_index.journal import capture
from vault_index.learn import timeline
from vault_index.transcripts import tools
from vault_index.transcripts.moments import EDIT, FAILED, OPEN, PERSON, RAN, Moment

FRAMES = 'Traceback (most recent call last):\n  File "a.py", line 1\n    x\nKeyError: "a"'


def read(talk: Talk, tmp_path: Path) -> tuple[Moment, ...]:
    return capture.read(talk.write(tmp_path / f"{SESSION}.jsonl"), "claude").moments


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("make site 2>&1 | tail -30", "building\nerror: no rule for pages"),
        ("git push 2>&1 | tail -3", "fatal: the current branch has no upstream"),
        ("cd web && npx vite | tail", "sh: vite: command not found"),
        ("./build *.md; true", "zsh: no matches found: *.md"),
        ("mytool --frm x | tail", "usage: mytool [--from X]\nmytool: error: unrecognized"),
        ("python a.py | tail", FRAMES),
        ("for f in a b; do ./x $f; done", "x: error: b is missing"),
    ],
)
def test_a_failure_behind_a_pipe_is_known_by_its_last_lines(command: str, output: str) -> None:
    assert tools.fails(command, output)


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("grep -rn 'error:' src", "src/a.py:1: error: x"),
        ("cat build.log | tail -3", "fatal: no upstream"),
        ("git log --oneline | head", "error: say why a push fails"),
        ("mytool --help", "usage: mytool [-h]"),
        ("for f in *.log; do cat $f; done", "error: x"),
        ("npm run deploy", "done, 0 errors, 3 not found in the cache"),
        ("./build", "error: the first try failed\n" + "ok\n" * 9),
    ],
)
def test_what_a_command_only_shows_is_no_failure(command: str, output: str) -> None:
    assert not tools.fails(command, output)


def test_terminal_sequences_are_taken_out_before_any_check(tmp_path: Path) -> None:
    talk = Talk()
    talk.prompt("Build \x1b[1mit\x1b[0m")
    link = "\x1b]8;;https://example.org/E1\x1b\\E1\x1b]8;;\x1b\\"
    talk.runs("./build | tail", f"\x1b[31merror\x1b[0m: {link} no space")
    prompt, failed = read(talk, tmp_path)
    assert prompt.text == "Build it"
    assert (failed.kind, failed.status, failed.text) == (FAILED, 0, "error: E1 no space")


def test_each_call_is_a_moment_of_its_turn(tmp_path: Path) -> None:
    talk = Talk()
    talk.prompt("Fix the cart")
    talk.edits("cart.py", "a\nb", "a\nc")
    talk.runs("git commit -m x", "[main 1a2b3c4] Fix the cart")
    talk.calls("Bash", None, command="sleep 9")
    talk.prompt("/clear")
    talk.prompt("And now?")
    there = read(talk, tmp_path)
    assert [(each.kind, each.number) for each in there] == [
        (PERSON, 1), (EDIT, 1), (RAN, 1), (OPEN, 1), (PERSON, 2),
    ]  # fmt: skip
    assert (there[1].about, there[1].text) == ("cart.py", "-b\n+c")
    assert there[2].commits == ["Fix the cart"]
    assert [each.kind for each in timeline.of_session(there)] == [PERSON, EDIT, RAN, PERSON]
