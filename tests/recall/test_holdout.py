"""Lessons that are held back by chance reach the agent by no door of ours, and the record has them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from tests.support.commands import run
from tests.support.files import write
from tests.support.indexed import copy_of, full_text_vault
from tests.support.mcp_servers import call
from tests.support.watchers import watched
from vault_index import config
from vault_index.entrypoints.mcp.agent import Agent
from vault_index.entrypoints.mcp.tools import build
from vault_index.recall import holdout
from vault_index.search import failures
from vault_index.store import injections
from vault_index.vault import Vault, open_vault

PATIENT = {
    "LESSONS_DEADLINE_MS": "60000",
    "LESSONS_FAILURE_DEADLINE_MS": "60000",
    "LESSONS_EMBEDDER": "none",
}
HEAP = "our frontend build in the pipeline dies with heap out of memory"
TAUGHT = "the bundle step is killed"
HELM = "Error: UPGRADE FAILED: another operation (install/upgrade/rollback) is in progress"
GREENLET = "sqlalchemy.exc.MissingGreenlet: greenlet_spawn has not been called"
FILES = {
    "devops/heap.md": f"---\ntitle: Heap of the frontend build\nfires_on: [{TAUGHT}]\n---\n"
    "When the frontend build in the pipeline dies with heap out of memory, raise the heap.\n",
    "devops/helm.md": "---\ntitle: A helm release that hangs in pending-upgrade\n---\nWhen a deploy is "
    "killed half way, helm says `another operation (install/upgrade/rollback) is in progress`. Roll "
    "back to the last good revision.\n",
    "development/greenlet.md": "---\ntitle: Lazy loads\n"
    "fires_on_error: [greenlet_spawn has not been called]\n---\nUse selectinload.\n",
    "development/migrations.md": "---\ntitle: Migrations are never edited\n"
    "applies_to: ['migrations/**']\n---\nAdd a new one: those of main ran in production already.\n",
    "rules/dates.md": "---\ntitle: Dates are UTC\ntype: project_rule\n---\nStore dates in UTC.\n",
    "conventions/names.md": "---\ntitle: Tables have plural names\n---\norders, not order.\n",
}
SHARE = 0.5


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = full_text_vault(tmp_path_factory.mktemp("shelf") / "team", FILES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LESSONS_EMBEDDER", "none")
        failures.fit(open_vault(root))
    return root


@pytest.fixture
def team(
    shelf: Path, tmp_path: Path, own_world: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Vault]:
    monkeypatch.setenv("LESSONS_EMBEDDER", "none")
    write(own_world / "config.toml", f"[measure]\nholdout = {SHARE}\n")
    vault = copy_of(shelf, tmp_path / "team")
    with watched(vault, **PATIENT):
        yield vault


def session_that(lesson: str, *, held: bool) -> str:
    """Return a session that is not told a lesson, or is."""
    return next(
        f"s{number}"
        for number in range(100)
        if holdout.is_held(SHARE, f"s{number}", lesson) is held
    )


def by_chance(session: str, lesson: str) -> bool:
    return holdout.is_held(SHARE, session, lesson)


def hook(vault: Vault, event: str, session: str, **more: Any) -> dict[str, Any]:
    """Send an event to a real hook process; return its answer, {} for silence."""
    asked = {"hook_event_name": event, "session_id": session, "cwd": str(vault.root)} | more
    asked.setdefault("tool_use_id", f"toolu_{time.monotonic_ns()}")
    done = run("lessons-hook", cwd=vault.root, stdin=json.dumps(asked), env=PATIENT)
    assert done.err == ""
    answer: dict[str, Any] = json.loads(done.out) if done.out else {}
    return answer


def told(answer: dict[str, Any]) -> str:
    return str(answer.get("hookSpecificOutput", {}).get("additionalContext", ""))


def prompt(text: str) -> Callable[[Vault, str], str]:
    return lambda vault, session: told(hook(vault, "UserPromptSubmit", session, prompt=text))


def failure(vault: Vault, session: str, error: str = HELM) -> str:
    values = {"tool_name": "Bash", "tool_input": {"command": "helm upgrade api charts/api"}}
    return told(hook(vault, "PostToolUseFailure", session, error=error, **values))


def edit(vault: Vault, session: str) -> str:
    file = {"file_path": str(vault.root / "migrations" / "0001.sql"), "old_string": "a"}
    return told(hook(vault, "PreToolUse", session, tool_name="Edit", tool_input=file))


def subagent(vault: Vault, session: str) -> str:
    values = {"prompt": HEAP, "subagent_type": "general-purpose"}
    assert not hook(vault, "PreToolUse", session, tool_name="Agent", tool_input=values)
    started = {"agent_id": "a1", "agent_type": "general-purpose"}
    return told(hook(vault, "SubagentStart", session, **started))


def held(vault: Vault) -> list[tuple[str, list[str], list[str]]]:
    """Return what the record has of both sides: event, held back, drawn and told."""
    return [
        (str(each["event"]), each.get("held", []), each.get("drawn", []))
        for each in injections.records(vault.index_dir)
        if "share" in each
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lesson", "event", "ask"),
    [
        ("devops/heap", "UserPromptSubmit", prompt(HEAP)),
        ("devops/heap", "SubagentStart", subagent),
        ("devops/helm", "PostToolUseFailure", failure),
        ("development/migrations", "FileEdit", edit),
    ],
)
def test_a_door_says_a_lesson_to_every_session_but_those_it_is_held_back_from(
    team: Vault, lesson: str, event: str, ask: Callable[[Vault, str], str]
) -> None:
    path = f"lessons/{lesson}.md"
    assert path in ask(team, session_that(lesson, held=False))
    assert path not in ask(team, session_that(lesson, held=True))
    assert held(team) == [(event, [], [lesson]), (event, [lesson], [])]
    last = run("lessons", "last", "-n", "1", cwd=team.root, env=PATIENT).out
    assert "held out: " in last
    assert lesson in last
    (shown,) = json.loads(
        run("lessons", "last", "-n", "1", "--json", cwd=team.root, env=PATIENT).out
    )
    assert [each["id"] for each in shown["held"]] == [lesson]


@pytest.mark.slow
def test_what_was_held_back_from_a_subagent_takes_no_other_file_of_it(team: Vault) -> None:
    session = session_that("development/migrations", held=True)
    for file, agent in (("1.sql", "a1"), ("2.sql", "a1"), ("3.sql", "a1"), ("4.sql", "")):
        values = {"file_path": str(team.root / "migrations" / file), "old_string": "a"}
        more = {"agent_id": agent} if agent else {}
        answer = hook(team, "PreToolUse", session, tool_name="Edit", tool_input=values, **more)
        assert not answer
    assert held(team) == [("FileEdit", ["development/migrations"], [])] * 2


@pytest.mark.slow
def test_a_session_start_holds_lessons_back_but_no_rule_and_says_so_once(team: Vault) -> None:
    run("git", "init", "-q", "-b", "main", cwd=team.root)
    run("git", "commit", "-q", "--allow-empty", "-m", HEAP, cwd=team.root)
    start = {"source": "startup"}
    first = hook(team, "SessionStart", session_that("devops/heap", held=True), **start)
    assert "50% are held back" in first["systemMessage"]
    assert "heap" not in told(first).lower()
    assert "Dates are UTC" in told(first)
    second = hook(team, "SessionStart", session_that("devops/heap", held=False), **start)
    assert "systemMessage" not in second
    assert "lessons/devops/heap.md" in told(second)
    ruled = next(f"r{number}" for number in range(99) if by_chance(f"r{number}", "rules/dates"))
    assert "Dates are UTC" in told(hook(team, "SessionStart", ruled, **start))


@pytest.mark.slow
def test_what_was_held_back_takes_no_place_again_and_comes_where_it_was_taught(team: Vault) -> None:
    session = session_that("devops/heap", held=True)
    assert prompt(HEAP)(team, session) == ""
    assert prompt(f"{HEAP} again")(team, session) == ""
    assert held(team) == [("UserPromptSubmit", ["devops/heap"], [])]
    assert "lessons/devops/heap.md" in prompt(TAUGHT)(team, session)
    assert len(held(team)) == 1


@pytest.mark.slow
def test_a_failure_that_comes_again_is_told_and_so_is_a_taught_line(team: Vault) -> None:
    session = session_that("devops/helm", held=True)
    assert failure(team, session) == ""
    second = failure(team, session)
    assert "Roll back" in second
    assert "same failure as before" not in second  # it was shown for it never
    assert "same failure as before" in failure(team, session)
    taught = session_that("development/greenlet", held=True)
    assert "selectinload" in failure(team, taught, GREENLET)
    assert [each for each in held(team) if each[1]] == [("PostToolUseFailure", ["devops/helm"], [])]


@pytest.mark.slow
def test_who_looks_up_is_answered_and_mcp_says_what_is_held_out(team: Vault) -> None:
    assert "lessons/devops/heap.md" in run("lessons", "search", HEAP, cwd=team.root).out

    async def look(session: str) -> list[str]:
        agent = Agent(str(team.root), session=session)
        async with Client(build(agent)) as client:
            found = await call(client, "learn_search", query=HEAP)
            return [found, await call(client, "learn_get", id="devops/heap")]

    for text in anyio.run(look, session_that("devops/heap", held=True)):
        assert "raise the heap" in text
        assert "Held out in this session" in text
    for text in [*anyio.run(look, session_that("devops/heap", held=False)), *anyio.run(look, "")]:
        assert "raise the heap" in text
        assert "Held out" not in text


def test_chance_is_a_hash_that_is_fair_and_for_ever() -> None:
    pairs = [(f"session-{one}", f"lesson-{two}") for one in range(200) for two in range(50)]
    tenth = {pair for pair in pairs if holdout.is_held(0.1, *pair)}
    assert 900 < len(tenth) < 1100
    assert tenth <= {pair for pair in pairs if holdout.is_held(0.2, *pair)}
    assert holdout.is_held(0.5, "s1", "devops/heap") is True  # on each machine
    assert not any(holdout.is_held(0.0, *pair) for pair in pairs)
    for number in range(50):  # of no lesson, and in no session, are there many more than of others
        of_lesson = sum(
            holdout.is_held(0.1, f"session-{one}", f"lesson-{number}") for one in range(999)
        )
        assert 60 < of_lesson < 140


def test_only_the_user_holds_lessons_back(own_world: Path, tmp_path: Path) -> None:
    vault = write(tmp_path / "vault.toml", "[measure]\nholdout = 0.5\n")
    loaded = config.load(vault)
    assert loaded.measure.holdout == 0
    assert "a vault may not set" in str(loaded.unknown_keys[0])
    write(own_world / "config.toml", "[measure]\nholdout = 1\n")
    with pytest.raises(Exception, match=r"measure\.holdout must be a share, 0 to 0\.9"):
        config.load()
