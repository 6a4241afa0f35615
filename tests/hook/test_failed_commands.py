"""The hook at a failed command: one lesson where one helps, soon, and nothing where anything is odd."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.agents.conftest import block_in, sent
from tests.support.commands import run
from tests.support.files import lesson_text, write
from tests.support.given import records
from tests.support.watchers import watched
from vault_index.hotpath import hook_event
from vault_index.vault import Vault

pytestmark = pytest.mark.slow

FILES = {
    "development/greenlet.md": "---\ntitle: SQLAlchemy async and lazy loads\n"
    "fires_on_error: [greenlet_spawn has not been called]\n---\n"
    "Use selectinload: a lazy attribute was read outside of the session.\n",
    "conventions/dates.md": lesson_text("Dates are UTC", "Store dates in UTC, show local ones."),
    "conventions/names.md": lesson_text("Tables have plural names", "orders, not order."),
}

GREENLET = "sqlalchemy.exc.MissingGreenlet: greenlet_spawn has not been called"


def failed(
    vault: Vault, error: str = f"Exit code 1\n{GREENLET}", patience: str = "60000", **more: Any
) -> str:
    """Send a failed call to a real hook process, and return what it prints."""
    event = {
        "hook_event_name": "PostToolUseFailure",
        "session_id": "s1",
        "cwd": str(vault.root),
        "prompt_id": "p1",
        "tool_name": "Bash",
        "tool_input": {"command": "pytest tests/api"},
        "tool_use_id": f"toolu_{time.monotonic_ns()}",
        "error": error,
        "is_interrupt": False,
    } | more
    env = {"LESSONS_FAILURE_DEADLINE_MS": patience}
    done = run("lessons-hook", cwd=vault.root, stdin=json.dumps(event), env=env)
    assert done.err == ""
    return done.out


def context(printed: str) -> str:
    output = json.loads(printed)["hookSpecificOutput"]
    assert output["hookEventName"] == "PostToolUseFailure"
    return str(output["additionalContext"])


def test_a_failure_gets_one_lesson_and_the_second_the_same_said_as_such(team: Vault) -> None:
    with watched(team):
        first = context(failed(team))
        assert "Use selectinload" in first
        assert first.count("  lessons/") == 1
        again = context(failed(team))
        assert "The same failure as before" in again
        assert "Use selectinload" in again
        assert failed(team) == ""
        assert "same failure" not in context(failed(team, agent_id="a1"))  # it has its own context
        assert failed(team, error="Exit code 1\nKeyError: 'price'") == ""
        assert "Use selectinload" in context(failed(team, session_id="s2"))
    told = records(team, hook_event.FAILURE)
    assert [bool(each.lessons) for each in told] == [True, True, False, True, False, True]
    assert told[0].said == GREENLET
    assert told[2].silent == "given twice already"
    assert len({each.prompt for each in told}) == 2
    last = run("lessons", "last", "-n", "9", cwd=team.root).out
    assert f"failed: {GREENLET}" in last
    assert "the same failure came again" in last
    assert "it did not come again" in last


def ended(vault: Vault, agent: str, moment: str, **more: Any) -> str:
    """Send the end of an agent's command to a real hook process, and return what it prints."""
    event = sent(agent, moment, vault.root, GREENLET) | more
    if event.get("transcript_path") == "TRANSCRIPT":
        lines = map(json.dumps, sent(agent, "transcript", vault.root, GREENLET))
        file = write(vault.root.parent / "rollout.jsonl", "".join(f"{line}\n" for line in lines))
        event["transcript_path"] = str(file)
    words = ("--agent", agent)
    done = run("lessons-hook", *words, cwd=vault.root, stdin=json.dumps(event))
    assert done.err == ""
    return done.out


def test_other_agents_get_the_lesson_in_their_form_and_only_where_a_command_failed(
    team: Vault, own_world: Path
) -> None:
    with watched(team):
        for agent in ("codex", "gemini", "cursor", "copilot", "opencode"):
            block = block_in(agent, "failure", ended(team, agent, "failure"))
            assert block.startswith("<lessons>")
            assert "Use selectinload" in block
    assert len(records(team, hook_event.FAILURE)) == 5
    for agent in ("codex", "gemini", "cursor", "copilot"):  # no watcher, and none is asked for
        assert ended(team, agent, "success") == ""
    odd: list[tuple[str, dict[str, Any]]] = [
        ("codex", {"transcript_path": None}),
        ("codex", {"transcript_path": str(team.root / "gone.jsonl")}),
        ("codex", {"tool_use_id": "call_9"}),
        ("gemini", {"tool_response": GREENLET}),
        ("gemini", {"tool_response": {"llmContent": GREENLET, "returnDisplay": {"a": 1}}}),
        ("copilot", {"tool_result": GREENLET}),
        (
            "copilot",
            {"tool_result": {"text_result_for_llm": f"{GREENLET}\n<shellId: 0 is running>"}},
        ),
        ("cursor", {"tool_output": GREENLET}),
        ("cursor", {"tool_output": json.dumps({"exitCode": 130, "stdout": GREENLET})}),
    ]
    for agent, more in odd:
        assert ended(team, agent, "failure", **more) == "", more
    assert len(records(team, hook_event.FAILURE)) == 5
    assert not (own_world / "hook.log").exists()


ODD: list[dict[str, Any]] = [
    {"is_interrupt": True},
    {"tool_name": "Edit"},
    {"tool_input": {"file_path": "a.py"}},
    {"tool_input": "pytest"},
    {"error": None},
    {"error": {"a": GREENLET}},
    {"error": ""},
    {"error": "Command timed out after 2m 0.0s"},
    {"error": "The user doesn't want to proceed with this tool use. The tool use was rejected"},
    {"hook_event_name": "PostToolUse"},
]


def test_any_output_is_read_and_anything_odd_gets_nothing(team: Vault) -> None:
    with watched(team):
        for odd in ODD:
            assert failed(team, **odd) == "", odd
        assert failed(team) != ""
        for number, error in enumerate(
            (
                "all is well\n" * 100_000 + GREENLET,
                f"\x1b[31mE   {GREENLET}\x1b[0m\r\n",
                f"\0\x01\x02\ufffd\ud800 binary\n{GREENLET}",
                f"Fehler: nichts geht mehr\nエラー\n{GREENLET}",
            )
        ):
            assert "Use selectinload" in context(
                failed(team, error=error, session_id=f"any{number}")
            )
        assert failed(team, error="x" * 10_000_000 + GREENLET, session_id="large") == ""  # not read


def test_without_a_watcher_there_is_no_answer_and_no_wait(team: Vault) -> None:
    assert failed(team, patience="3600000") == ""
