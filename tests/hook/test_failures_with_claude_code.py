"""With the real agent: a command fails, and the lesson is in the next request to the model.

Claude Code comes from npm; its model is a stub on loopback, so nothing leaves the machine.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.claude_code import OpenSession, environment
from tests.support.commands import run
from tests.support.files import MakeVault, lesson_text, write
from tests.support.given import records
from tests.support.messages_api import Blocks, MessagesApi, last_text, text, tool_use
from tests.support.watchers import watched
from vault_index.hotpath import hook_event
from vault_index.vault import Vault

pytestmark = [pytest.mark.claude_code, pytest.mark.timeout(900)]

MESSAGE = "greenlet_spawn has not been called"
ADVICE = "Use selectinload: a lazy attribute was read outside of the session."
FAILS = f"echo 'sqlalchemy.exc.MissingGreenlet: {MESSAGE}' >&2; exit 2"
MAIN, DELEGATE = "run the api tests", "delegate the api tests"
SUBTASK = "SUBTASK run the tests of the api"
START_ADVICE = "Start the database of the api with compose before its tests."
FILES = {
    "development/greenlet.md": f"---\ntitle: Lazy loads\nfires_on_error: [{MESSAGE}]\n---\n{ADVICE}\n",
    "development/api.md": f"---\ntitle: Tests of the api\nfires_on: [{SUBTASK}]\n---\n{START_ADVICE}\n",
    "conventions/dates.md": lesson_text("Dates are UTC", "Store dates in UTC, show local ones."),
}


@pytest.fixture
def team(make_vault: MakeVault, own_world: Path, text_only: None) -> Iterator[Vault]:
    vault = make_vault(FILES)
    write(vault.lessons_dir / "vault.toml", "session_sources = []\n")
    run("lessons", "index", cwd=vault.root)
    run("lessons", "install", "claude", cwd=vault.root)
    with watched(vault, LESSONS_EMBEDDER="none"):
        yield vault


def answer(request: dict[str, Any]) -> Blocks:
    """Answer as a model that runs the tests, or has a subagent run them."""
    last = last_text(request)
    if "tool_result" in last:
        return [text("done")]
    if SUBTASK in last or MAIN in last:
        return [tool_use("Bash", command=FAILS, description="Run the tests")]
    if DELEGATE in last:
        names = {tool["name"] for tool in request.get("tools", [])}
        tool = "Agent" if "Agent" in names else "Task"
        return [
            tool_use(tool, description="Run tests", prompt=SUBTASK, subagent_type="general-purpose")
        ]
    return [text("ok")]


def hold(claude: Path, api: MessagesApi, team: Vault, home: Path, prompt: str) -> list[str]:
    """Hold a session; return what the model was sent after the failed command, as JSON."""
    world = environment(api, home) | {"LESSONS_EMBEDDER": "none"}
    api.answer = answer
    with OpenSession(claude, team.root, world) as session:
        session.say(prompt)
        session.answer()
    sent = [json.dumps(request["messages"]) for request in api.requests]
    return [each for each in sent if MESSAGE in each and "tool_result" in each]


def test_a_lesson_is_in_the_request_after_the_failure(
    claude: Path, api: MessagesApi, team: Vault, own_world: Path
) -> None:
    after = hold(claude, api, team, own_world, MAIN)
    assert after
    assert ADVICE in after[0]
    (told,) = records(team, hook_event.FAILURE)
    assert told.lessons == ["development/greenlet"]


def test_a_subagent_is_told_at_its_start_and_after_a_failure_in_its_own_context(
    claude: Path, api: MessagesApi, team: Vault, own_world: Path
) -> None:
    after = hold(claude, api, team, own_world, DELEGATE)
    assert any(ADVICE in each and SUBTASK in each and DELEGATE not in each for each in after)
    sent = [json.dumps(request["messages"]) for request in api.requests]
    of_subagent = [each for each in sent if SUBTASK in each and DELEGATE not in each]
    assert START_ADVICE in of_subagent[0]
    assert "SubagentStart hook additional context: <lessons>" in of_subagent[0]
    (told,) = records(team, hook_event.SUBAGENT)
    assert told.lessons == ["development/api"]


def test_the_first_edit_of_a_file_gets_its_lesson(
    claude: Path, api: MessagesApi, team: Vault, own_world: Path
) -> None:
    advice = "Add a new one: those of main ran in production already."
    head = "---\ntitle: Migrations\napplies_to: ['migrations/**']\n---\n"
    write(team.lessons_dir / "development" / "migrations.md", f"{head}{advice}\n")
    run("lessons", "install", "claude", "--files", cwd=team.root)
    run("lessons", "index", cwd=team.root)
    places = [team.root / "migrations" / name for name in ("1.sql", "2.sql")]
    waiting = iter(places)

    def work(_request: dict[str, Any]) -> Blocks:
        place = next(waiting, None)
        return [tool_use("Write", file_path=str(place), content="1\n") if place else text("done")]

    api.answer = work
    world = environment(api, own_world) | {"LESSONS_EMBEDDER": "none"}
    with OpenSession(claude, team.root, world, "Write") as session:
        session.say(MAIN)
        session.answer()
    assert all(place.read_text() == "1\n" for place in places)
    sent = [json.dumps(request["messages"]) for request in api.requests]
    first = next(each for each in sent if "tool_result" in each)
    assert "PreToolUse:Write hook additional context: <lessons>" in first
    assert sent[-1].count(advice) == 1
    (told,) = records(team, hook_event.EDIT)
    assert told.lessons == ["development/migrations"]
