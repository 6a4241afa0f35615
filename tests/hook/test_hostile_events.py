"""Whatever an event holds, the hook is silent or answers, and no command afterwards meets it again."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import run
from tests.support.conversations import Conversation
from tests.support.files import commit, write
from tests.support.three_lessons import HEAP
from vault_index.journal import waiting
from vault_index.journal.journal import Journal
from vault_index.vault import Vault

HALF = "\ud800"  # of a character: JSON can name it, and neither a file nor a database takes it
PROMPT = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": HEAP}
FAILED = {
    "hook_event_name": "PostToolUseFailure",
    "session_id": "s",
    "tool_name": "Bash",
    "tool_input": {"command": "npm run build"},
    "error": "FATAL ERROR: heap out of memory",
    "tool_use_id": "t",
}
EVENTS: dict[str, dict[str, Any]] = {
    "a prompt": PROMPT,
    "a start": {"hook_event_name": "SessionStart", "session_id": "s", "source": "startup"},
    "a failure": FAILED,
    "an edit": {
        "hook_event_name": "PreToolUse",
        "session_id": "s",
        "tool_name": "Edit",
        "tool_input": {"file_path": "webpack/x.js"},
    },
    "a subagent": {
        "hook_event_name": "PreToolUse",
        "session_id": "s",
        "tool_name": "Task",
        "tool_input": {"prompt": HEAP, "subagent_type": "explorer"},
    },
    "its start": {"hook_event_name": "SubagentStart", "session_id": "s", "agent_type": "explorer"},
}
FIELDS = ("hook_event_name", "session_id", "prompt_id", "cwd", "source", "prompt", "agent_id",
          "agent_type", "tool_use_id", "transcript_path", "error", "tool_name")  # fmt: skip
VALUES: tuple[Any, ...] = (HALF, f"\udfff{HALF}", "a\0b", 1e400, -0.0, None, True, [], {}, "x" * 100_000,
          [HALF], {HALF: HALF}, 10**400)  # fmt: skip
AFTERWARDS = (
    *("status", "status --check", "status --json", "last", "last --json", "list", "show node-heap"),
    *(
        "search heap",
        "recall heap of the build",
        "useful --last 1 yes",
        "teach --last 1 --fires node-heap",
    ),
    *("check --stale", "journal status", "journal sessions", "journal import", "learn --why"),
    *("review list", "skills build --dry-run", "vaults", "categories", "index"),
)


@pytest.fixture
def team(team: Vault) -> Vault:
    commit(team.root, "three lessons")
    return team


def sent(team: Vault, event: dict[str, Any], **env: str) -> None:
    """Send an event to a real hook; it ends well and complains to nobody."""
    event = {"cwd": str(team.root), **event}
    done = run("lessons-hook", cwd=team.root, stdin=json.dumps(event), env=env)
    assert (done.code, done.err) == (0, "")
    assert not done.out or json.loads(done.out)


# A hook for each line of a file, each in a fork of a process that has loaded what they load: most of a
# hook's time is the start of Python.
HOOKS = """
import os, sys, tempfile
import numpy, sqlite3, tomllib
from vault_index.entrypoints.hook import client, fallback
from vault_index.recall import respond
from vault_index.watch import launch

sys.argv, lines = ["lessons-hook"], open(sys.argv[1], "rb").read().splitlines()
for number, line in enumerate(lines):
    streams = [tempfile.TemporaryFile() for _ in range(3)]
    streams[0].write(line)
    streams[0].seek(0)
    if not os.fork():
        for descriptor, stream in enumerate(streams):
            os.dup2(stream.fileno(), descriptor)
        client.main()
    status = os.wait()[1]
    said = [os.pread(stream.fileno(), 1 << 20, 0) for stream in streams[1:]]
    assert (status, said[1]) == (0, b""), (number, status, said)
    sys.stdout.write(said[0].decode() + "\\n")
"""


def all_sent(team: Vault, events: list[dict[str, Any]]) -> None:
    """Send each event to a hook of its own; each ends well and complains to nobody."""
    lines = [json.dumps({"cwd": str(team.root), **event}) for event in events]
    file = write(team.root.parent / "events.jsonl", "\n".join(lines))
    done = run(sys.executable, "-c", HOOKS, file, cwd=team.root, timeout=300)
    answers = done.out.split("\n")[:-1]
    assert len(answers) == len(events)
    assert all(not answer or json.loads(answer) for answer in answers)


def assert_all_goes_on(team: Vault) -> None:
    for line in AFTERWARDS:
        done = run("lessons", *line.split(), cwd=team.root, check=False)
        assert "a bug of lessons" not in done.out + done.err, (line, done)
        assert "Traceback" not in done.out + done.err, (line, done)


@pytest.mark.slow
def test_each_field_with_half_a_character_is_followed_by_every_command(
    team: Vault, own_world: Path
) -> None:
    """The line of a prompt that got no answer goes into the database: it ended `status` and `last`."""
    hostile = [{**event, field: f"a{HALF}b"} for event in EVENTS.values() for field in FIELDS]
    for event in EVENTS.values():
        given = event.get("tool_input", {})
        hostile += [{**event, "tool_input": {**given, key: f"x{HALF}"}} for key in given]
    all_sent(team, hostile)
    settings = team.lessons_dir / "vault.toml"
    kept = settings.read_bytes()
    settings.write_text("no settings")  # so that no event gets an answer, and the log has each
    all_sent(team, hostile)
    settings.write_bytes(kept)
    assert '"session": "a?b"' in (own_world / "hook.log").read_text()
    assert_all_goes_on(team)


@pytest.mark.slow
def test_each_field_of_another_kind_is_followed_by_every_command(team: Vault) -> None:
    whole = [
        {**event, **dict.fromkeys(FIELDS[1:], value)}
        for value in VALUES
        for event in EVENTS.values()
    ]
    all_sent(team, whole + [{**PROMPT, field: value} for value in VALUES for field in FIELDS])
    sent(team, whole[0])  # by the program that agents start
    assert_all_goes_on(team)


def test_a_log_that_another_version_wrote_so_is_read(team: Vault, own_world: Path) -> None:
    line = {"time": "2026-11-29T02:00:00Z", "event": "UserPromptSubmit", "vault": str(team.root),
            "cwd": HALF, "ms": 10**400, "message": f"late {HALF}", "missed": True, "session": HALF,
            "prompt": HALF}  # fmt: skip
    write(own_world / "hook.log", json.dumps(line) + "\n[1]\n7\n{\n")
    assert run("lessons", "status", cwd=team.root).out.count("late ?") >= 1
    assert "missed: late ?" in run("lessons", "last", cwd=team.root).out


def test_an_event_with_a_byte_order_mark_is_read(team: Vault) -> None:
    event = json.dumps({**PROMPT, "cwd": str(team.root)})
    assert "node-heap" in run("lessons-hook", cwd=team.root, stdin=f"\ufeff{event}").out


def halved(value: Any) -> Any:
    """Return a value of JSON with half a character at the end of each text."""
    if isinstance(value, dict):
        return {key: halved(each) for key, each in value.items()}
    if isinstance(value, list):
        return [halved(each) for each in value]
    return f"{value}{HALF}" if isinstance(value, str) else value


@pytest.mark.slow
def test_a_transcript_with_half_characters_is_taken_in(team: Vault, own_world: Path) -> None:
    write(own_world / "journal/recorded", "*\n")
    talk = Conversation(team.root, "hostile").asks("Fix the login of the shop, please")
    talk.runs("pytest", "FAILED", failed=True).edits("a.py", "x", "y").runs("pytest", "1 passed")
    lines = [json.loads(line) for line in talk.file.read_bytes().splitlines()]
    for name in ("message", "uuid", "gitBranch", "version", "sessionId", "cwd", "all"):
        changed = [
            {key: halved(each) if name in (key, "all") and key not in ("type", "timestamp") else each
             for key, each in line.items()}
            for line in lines
        ]  # fmt: skip
        talk.file.with_name(f"{name}.jsonl").write_text("\n".join(map(json.dumps, changed)) + "\n")
    said: list[str] = []
    for file in talk.file.parent.glob("*.jsonl"):
        event = {**talk.event("Stop"), "transcript_path": str(file)}
        sent(team, event)
    waiting.catch_up(Journal(team.config), said.append)
    assert said == []
    assert_all_goes_on(team)
