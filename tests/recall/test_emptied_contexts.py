"""An agent forgets when its context is emptied: a lesson comes once, and again when it is lost."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.files import write
from tests.support.given import records
from vault_index import config
from vault_index.hotpath import agents, hook_event
from vault_index.hotpath.hook_event import Event
from vault_index.recall.respond import respond
from vault_index.store import delivery
from vault_index.vault import Vault, open_vault

PROMPT = "the harbour gate stays shut, what do I run"
GREENLET = "sqlalchemy.exc.MissingGreenlet: greenlet_spawn has not been called"
GATE, FORCE, LOADS = "tide log", "with force", "selectinload"
FILES = {
    "port/gate.md": f'---\ntitle: The harbour gate\nfires_on: ["{PROMPT}"]\n---\n'
    "Before the harbour gate opens run `tide log`.\n",
    "port/rule.md": "---\ntitle: Never force-push\ntype: project_rule\n---\n"
    "Nobody pushes with force to main.\n",
    "loads.md": "---\ntitle: Lazy loads\nfires_on_error: [greenlet_spawn has not been called]\n---\n"
    "Use selectinload.\n",
    "dates.md": "---\ntitle: Dates\napplies_to: ['dates/*.py']\n---\nDates are UTC.\n",
}


def told(vault: Vault, name: str, session: str, **values: Any) -> str:
    """Return what an agent is told at an event, "" for nothing."""
    event = Event(name, session, cwd=str(vault.root), **values)
    answer = respond(vault, event, by="process", ms=0.0) or {}
    return str(answer.get("hookSpecificOutput", {}).get("additionalContext", ""))


def asks(vault: Vault, session: str, **values: Any) -> bool:
    """Whether a prompt about the gate gets its lesson."""
    return GATE in told(vault, hook_event.PROMPT, session, prompt=PROMPT, **values)


def starts(vault: Vault, source: str, session: str, **values: Any) -> set[str]:
    """Return the lessons that a session gets as it starts."""
    text = told(vault, hook_event.START, session, source=source, **values)
    return {lesson for lesson in (GATE, FORCE) if lesson in text}


def test_a_session_has_a_lesson_until_its_context_is_emptied(team: Vault) -> None:
    """Case P27: compacted, resumed, cleared, resumed under another id."""
    assert starts(team, "startup", "s1") == {FORCE}
    assert [asks(team, "s1"), asks(team, "s1")] == [True, False]
    assert starts(team, "compact", "s1") == {FORCE, GATE}
    assert not asks(team, "s1")
    assert starts(team, "resume", "s1") == set()
    assert not asks(team, "s1")
    assert starts(team, "clear", "s1") == {FORCE}  # rules as at a start, and no lesson of before
    assert [asks(team, "s1"), asks(team, "s1")] == [True, False]
    assert starts(team, "resume", "s2") == set()
    assert [asks(team, "s2"), asks(team, "s2")] == [True, False]


@pytest.mark.parametrize("source", [*hook_event.EMPTIED])
def test_what_was_lost_comes_again_though_the_start_itself_gets_nothing(
    team: Vault, source: str
) -> None:
    write(team.lessons_dir / "vault.toml", "session_sources = []\n")
    vault = open_vault(team.root)
    assert asks(vault, "s1")
    assert starts(vault, source, "s1") == set()
    assert asks(vault, "s1")


@pytest.mark.parametrize("source", ["resume", "fork", "another"])
def test_any_other_start_keeps_what_the_session_has(team: Vault, source: str) -> None:
    write(team.lessons_dir / "vault.toml", f'session_sources = ["{source}"]\n')
    vault = open_vault(team.root)
    assert asks(vault, "s1")
    assert starts(vault, source, "s1") == {FORCE}
    assert not asks(vault, "s1")


def test_a_subagents_compaction_is_the_subagents_alone(team: Vault) -> None:
    assert asks(team, "s3")
    assert asks(team, "s3", agent_id="a1")
    assert asks(team, "s3", agent_id="a2")
    assert starts(team, "compact", "s3", agent_id="a1") == {FORCE, GATE}
    assert not asks(team, "s3")
    assert not asks(team, "s3", agent_id="a2")
    assert not asks(team, "s3", agent_id="a1")  # it has it again


def test_a_fork_that_is_compacted_forgets_what_its_session_heard(team: Vault) -> None:
    assert asks(team, "s3")
    event = Event(hook_event.SUBAGENT, "s3", agent_id="a1", agent_type="fork")
    delivery.inherit(team.config.home, team.root, event)
    assert not asks(team, "s3", agent_id="a1")
    assert starts(team, "clear", "s3", agent_id="a1") == {FORCE}
    assert asks(team, "s3", agent_id="a1")
    assert not asks(team, "s3")


def test_one_prompt_may_be_compacted_twice(team: Vault) -> None:
    """Claude Code says with each event which prompt it works on."""
    assert asks(team, "s1", prompt_id="p1")
    for _ in range(2):
        assert starts(team, "compact", "s1", prompt_id="p1") == {FORCE, GATE}


@pytest.mark.parametrize(
    ("name", "values", "advice"),
    [
        (hook_event.FAILURE, {"command": "pytest", "error": f"Exit code 1\n{GREENLET}"}, LOADS),
        (hook_event.EDIT, {"file": "dates/day.py"}, "Dates are UTC"),
    ],
)
def test_what_came_at_a_call_comes_again_too(
    team: Vault, name: str, values: dict[str, Any], advice: str
) -> None:
    for _ in range(3):
        said = told(team, name, "s1", tool_use_id="t", **values)
    assert advice not in said
    starts(team, "clear", "s1")
    said = told(team, name, "s1", tool_use_id="t2", **values)
    assert advice in said
    assert "same failure" not in said


def test_of_two_hooks_of_one_start_the_second_forgets_nothing(team: Vault) -> None:
    began = {"began": 0.0}
    assert starts(team, "clear", "s1", **began) == {FORCE}
    assert starts(team, "clear", "s1", **began) == set()
    (start,) = records(team, hook_event.START)
    assert delivery.received(team.config.home, team.root, "s1") == (["port/rule"], [])
    assert start.lessons == ["port/rule"]


def test_a_cleared_session_begins_like_a_new_one_by_default() -> None:
    unheard = {agents.EMPTIED}
    assert {*config.load().session_sources} == {*hook_event.EMPTIED} - unheard
