"""The real `lessons-hook` process: what it answers, when it is silent, and that it never fails."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import BIN, Ran, run
from tests.support.files import commit
from tests.support.three_lessons import HEAP
from vault_index.vault import Vault


@pytest.fixture
def team(team: Vault) -> Vault:
    """An indexed vault of three lessons, in a repository."""
    commit(team.root, "docker: stop rebuilding every layer when a source file changes")
    run("lessons", "index", cwd=team.root)
    return team


def hook(vault: Vault, env: dict[str, str] | None = None, **event: Any) -> Ran:
    """Send one event to a real hook process; it must end with 0 and complain to nobody."""
    event = {"hook_event_name": "UserPromptSubmit", "session_id": "s1", "prompt": HEAP} | event
    event.setdefault("cwd", str(vault.root))
    done = run("lessons-hook", cwd=vault.root.parent, stdin=json.dumps(event), env=env)
    assert done.err == ""
    return done


def injected(done: Ran) -> str:
    """Return the text for the agent; the answer must have the one shape that Claude Code reads."""
    output = done.json["hookSpecificOutput"]
    assert set(done.json) <= {"hookSpecificOutput", "systemMessage"}
    assert set(output) == {"hookEventName", "additionalContext"}
    text: str = output["additionalContext"]
    return text


@pytest.mark.slow
def test_a_prompt_gets_the_lesson_that_matters(team: Vault) -> None:
    answer = hook(team)
    assert answer.json["hookSpecificOutput"]["hookEventName"] == "UserPromptSubmit"
    assert answer.json["systemMessage"].startswith("lessons: Node")  # for the person
    text = injected(answer)
    assert text.startswith("<lessons>")
    assert text.endswith("</lessons>")
    assert "[devops/ci-cd] Node runs out of memory in the CI build (" in text
    assert "lessons/devops/ci-cd/node-heap.md · Ada Lovelace, 2" in text
    assert "raise the heap: NODE_OPTIONS." in text


@pytest.mark.parametrize(
    "event",
    [
        {"prompt": "thanks, looks good"},
        {"prompt": "yes"},
        {"prompt": "/compact heap out of memory in the build"},
        {"prompt": "<task-notification> heap out of memory in the build"},
        {"source": "system"},
        {"source": "loop_wakeup"},
        {"source": "schedule_wakeup"},
        {"source": "poll_event"},
        {"hook_event_name": "Stop"},
        {"hook_event_name": "SessionStart", "source": "resume"},
        {"prompt": None},
        {"cwd": "/"},
        {"cwd": "/no/such/folder"},
        {"prompt": "what is the weather like in Lisbon next weekend"},
    ],
    ids=str,
)
def test_silence(team: Vault, event: dict[str, Any]) -> None:
    assert hook(team, **event).out == ""


@pytest.mark.parametrize("stdin", ["", "{not json", "[1, 2]", '"text"', "\x00\xff", "{}"])
def test_bad_input_is_silence_and_exit_0(own_world: Path, stdin: str) -> None:
    done = run("lessons-hook", cwd=own_world, stdin=stdin)
    assert (done.code, done.out, done.err) == (0, "", "")


def test_the_deadline_holds_and_is_logged_without_the_prompt(team: Vault, own_world: Path) -> None:
    assert hook(team, env={"LESSONS_DEADLINE_MS": "1"}).out == ""
    log = (own_world / "hook.log").read_text()
    assert re.fullmatch(
        r"no (answer|event) in 1 ms \(LESSONS_DEADLINE_MS\)", json.loads(log)["message"]
    )
    assert "heap" not in log
    assert "in 1 ms (LESSONS_DEADLINE_MS)" in run("lessons", "status", cwd=team.root).out


@pytest.mark.parametrize(
    ("of_failures", "of_all", "named"),
    [
        ("1", "60000", "1 ms (LESSONS_FAILURE_DEADLINE_MS)"),
        ("900", "2", "2 ms (LESSONS_DEADLINE_MS)"),
    ],
)
def test_the_log_names_the_deadline_that_was_missed(
    team: Vault, own_world: Path, of_failures: str, of_all: str, named: str
) -> None:
    event = {"hook_event_name": "PostToolUseFailure", "tool_name": "Bash", "error": "out of memory",
             "tool_input": {"command": "npm run build"}}  # fmt: skip
    env = {"LESSONS_FAILURE_DEADLINE_MS": of_failures, "LESSONS_DEADLINE_MS": of_all}
    assert hook(team, env=env, **event).out == ""
    lines = (own_world / "hook.log").read_text().splitlines()
    assert {json.loads(line)["message"].partition(" in ")[2] for line in lines} == {named}


@pytest.mark.slow
def test_a_stdin_that_never_closes_ends_at_the_deadline(team: Vault) -> None:
    env = os.environ | {"LESSONS_DEADLINE_MS": "2000"}
    process = subprocess.Popen(
        [BIN / "lessons-hook"], stdin=subprocess.PIPE, cwd=team.root, env=env
    )
    assert process.wait(timeout=60) == 0
    assert process.stdin
    process.stdin.close()


@pytest.mark.slow
def test_a_damaged_index_is_not_asked_and_built_again(team: Vault, own_world: Path) -> None:
    for file in team.index_dir.rglob("*.lance"):
        if file.is_file():
            file.write_bytes(b"garbage")
    assert "node-heap.md" in hook(team).out  # from the files
    log = own_world / "hook.log"
    assert "damaged" in log.read_text()
    deadline = time.monotonic() + 60
    lines = ""
    while log.read_text() != lines and time.monotonic() < deadline:
        time.sleep(1)
        lines = log.read_text()
        assert "node-heap.md" in hook(team, session_id=str(time.monotonic())).out
    assert log.read_text() == lines  # nothing is wrong any more


def test_an_event_too_large_to_parse_is_read_to_its_end_and_dropped(
    team: Vault, own_world: Path
) -> None:
    """Parsing 20 MB holds the interpreter past the deadline; who writes it must not fail either."""
    assert hook(team, prompt=HEAP + " x" * 10_000_000).out == ""
    assert "20000" in (own_world / "hook.log").read_text()
    assert "is not read" in (own_world / "hook.log").read_text()
