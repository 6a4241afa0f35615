"""A subagent gets the lessons for the prompt that it is started with, in its own context."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from tests.support.commands import run
from tests.support.given import records
from tests.support.three_lessons import HEAP
from tests.support.watchers import watched
from vault_index.hotpath import hook_event
from vault_index.hotpath.hook_event import Event
from vault_index.store import delivery
from vault_index.vault import Vault

pytestmark = pytest.mark.slow

ADVICE = "node-heap.md"
SIGNPOST = "This team keeps 3 lessons"
# recorded from Claude Code 2.1.329
STARTING: dict[str, Any] = {
    "session_id": "24eb759c-5368-46f3-a1f5-3468746a6900",
    "transcript_path": "/home/me/.claude/projects/-shop/24eb759c-5368-46f3-a1f5-3468746a6900.jsonl",
    "prompt_id": "2e61ad60-d431-4ec6-b16f-550b63ba923a",
    "permission_mode": "default",
    "effort": {"level": "medium"},
    "hook_event_name": "PreToolUse",
    "tool_name": "Agent",
    "tool_input": {"description": "d", "prompt": HEAP, "subagent_type": "general-purpose"},
    "tool_use_id": "toolu_43912f2c1a254f36abb6e78d",
}
STARTED: dict[str, Any] = {
    "session_id": "24eb759c-5368-46f3-a1f5-3468746a6900",
    "transcript_path": "/home/me/.claude/projects/-shop/24eb759c-5368-46f3-a1f5-3468746a6900.jsonl",
    "prompt_id": "2e61ad60-d431-4ec6-b16f-550b63ba923a",
    "agent_id": "a3ea9b1477085efdd",
    "agent_type": "general-purpose",
    "hook_event_name": "SubagentStart",
}


def send(vault: Vault, event: dict[str, Any], **more: Any) -> str:
    """Send an event to a real hook process, and return what it prints."""
    asked = event | {"cwd": str(vault.root)} | more
    done = run("lessons-hook", cwd=vault.root, stdin=json.dumps(asked))
    assert done.err == ""
    return done.out


def start(vault: Vault, prompt: str, call: str, agent: str, kind: str = "general-purpose") -> str:
    """Start a subagent as Claude Code does, and return what it is told."""
    values = {"prompt": prompt, "subagent_type": kind}
    assert send(vault, STARTING, tool_input=values, tool_use_id=call) == ""
    printed = send(vault, STARTED, agent_id=agent, agent_type=kind)
    if not printed:
        return ""
    output = json.loads(printed)["hookSpecificOutput"]
    assert output["hookEventName"] == "SubagentStart"
    return str(output["additionalContext"])


def test_each_subagent_gets_what_its_prompt_needs(team: Vault) -> None:
    with watched(team):
        prompt = {"hook_event_name": "UserPromptSubmit", "session_id": STARTED["session_id"]}
        assert ADVICE in send(team, prompt, prompt=HEAP, prompt_id="p0")
        assert ADVICE in start(team, HEAP, "c1", "a1")  # it has not the context of the main agent
        assert ADVICE in start(team, HEAP, "c2", "a2")
        other = start(team, "please translate the greeting into Latin", "c3", "a3")
        assert SIGNPOST in other
        assert ADVICE not in other
        assert ADVICE not in send(team, prompt, prompt=f"{HEAP} again", prompt_id="p9")
    told = records(team, hook_event.SUBAGENT)
    assert [bool(each.lessons) for each in told] == [True, True, False]
    assert told[0].prompt == delivery.key_of(HEAP)
    assert run("lessons", "last", "-n", "9", cwd=team.root).out.count("node-heap")


def test_a_fork_has_heard_what_its_session_got(team: Vault) -> None:
    with watched(team):
        prompt = {"hook_event_name": "UserPromptSubmit", "session_id": STARTED["session_id"]}
        assert ADVICE in send(team, prompt, prompt=HEAP, prompt_id="p0")
        assert start(team, HEAP, "c1", "a1", "fork") == ""
        layers = "docker rebuilds every layer because of one COPY, which order keeps them cached"
        assert "layers.md" in start(team, layers, "c2", "a2", "fork")
        assert ADVICE in start(team, HEAP, "c3", "a3", "fork-reviewer")
    given = delivery.received(team.config.home, team.root, STARTED["session_id"], "a1")
    assert given == delivery.received(team.config.home, team.root, STARTED["session_id"])
    assert given


def test_two_that_start_side_by_side_get_their_own_and_two_hooks_answer_once(team: Vault) -> None:
    with watched(team):
        silent = {"prompt": "please translate the greeting into Latin", "subagent_type": "Explore"}
        for _ in range(2):  # the user's hook and the project's
            assert send(team, STARTING) == ""
        assert send(team, STARTING, tool_input=silent, tool_use_id="c2") == ""
        assert ADVICE not in send(team, STARTED, agent_type="Explore", agent_id="a2")
        assert ADVICE in send(team, STARTED, agent_id="a1")
        assert send(team, STARTED, agent_id="a1") == ""
        assert ADVICE not in send(team, STARTED, agent_id="a3")


def test_without_a_watcher_the_hook_answers_itself(team: Vault) -> None:
    assert ADVICE in start(team, HEAP, "c1", "a1")


def test_anything_odd_gets_nothing(team: Vault) -> None:
    odd: list[dict[str, Any]] = [
        {"tool_name": "Bash"},
        {"tool_input": HEAP},
        {"tool_input": {"prompt": ["x"]}},
        {"tool_input": {}},
        {"session_id": ""},
    ]
    for changes in odd:
        assert send(team, STARTING, **changes) == ""
    assert ADVICE not in send(team, STARTED)
    assert send(team, STARTED, session_id=7) == ""


def test_a_note_does_not_wait_for_ever(team: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    assert send(team, STARTING) == ""
    later = time.time() + 2 * delivery.NOTE_SECONDS
    monkeypatch.setattr(time, "time", lambda: later)
    assert delivery.take_note(team.config.home, team.root, Event.of(STARTED)) is None
