"""With the real agent: a lesson that is held back reaches its model by no door of ours.

Claude Code comes from npm; its model is a stub on loopback, so nothing leaves the machine.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import pytest

from tests.support.claude_code import OpenSession, environment
from tests.support.commands import BIN, run
from tests.support.files import MakeVault, commit, lesson_text, write
from tests.support.messages_api import (
    Blocks,
    MessagesApi,
    last_text,
    model_that_calls,
    results_of,
    text,
    tool_use,
)
from tests.support.watchers import watched
from vault_index.recall import holdout
from vault_index.search import failures
from vault_index.store import injections
from vault_index.vault import Vault, open_vault

pytestmark = [pytest.mark.claude_code, pytest.mark.slow, pytest.mark.timeout(900)]

SHARE = 0.5
ADVICE = "Roll back to the last good revision with helm rollback."
MESSAGE = "another operation (install/upgrade/rollback) is in progress"
PROMPT = f"the helm release hangs in pending-upgrade: {MESSAGE}"
FAILS = f"echo 'Error: UPGRADE FAILED: {MESSAGE}' >&2; exit 1"
LESSON = "devops/helm"
FILES = {
    f"{LESSON}.md": "---\ntitle: A helm release that hangs in pending-upgrade\n"
    f"applies_to: ['charts/**']\n---\nWhen helm says `{MESSAGE}`, a deploy was killed. {ADVICE}\n",
    "conventions/dates.md": lesson_text("Dates are UTC", "Store dates in UTC, show local ones."),
    "conventions/names.md": lesson_text("Tables have plural names", "orders, not order."),
}


@pytest.fixture(params=["SessionStart", "UserPromptSubmit"])
def first(request: pytest.FixtureRequest) -> str:
    """Return the event that meets the lesson first."""
    return str(request.param)


@pytest.fixture
def team(
    make_vault: MakeVault, own_world: Path, monkeypatch: pytest.MonkeyPatch, first: str
) -> Iterator[Vault]:
    monkeypatch.setenv("LESSONS_EMBEDDER", "none")
    write(own_world / "config.toml", f"[measure]\nholdout = {SHARE}\n")
    sources = '["startup"]' if first == "SessionStart" else "[]"
    vault = make_vault(FILES | {"vault.toml": f"session_sources = {sources}\n"})
    commit(vault.root, f"helm: {MESSAGE}")
    run("lessons", "index", cwd=vault.root)
    failures.fit(open_vault(vault.root))
    run("lessons", "install", "claude", "--files", cwd=vault.root)
    with watched(vault, LESSONS_EMBEDDER="none"):
        yield vault


def session_that(*, held: bool) -> str:
    """Return the id of a session that is not told the lesson, or is."""
    ids = (str(uuid5(NAMESPACE_URL, str(number))) for number in range(100))
    return next(id for id in ids if holdout.is_held(SHARE, id, LESSON) is held)


def sent_after(
    claude: Path, api: MessagesApi, team: Vault, home: Path, session: str
) -> tuple[str, str]:
    """Hold a session that asks, edits a chart and fails; return what the model read, and MCP's answer."""
    chart = team.root / "charts" / "api.yaml"
    done: list[str] = []
    search = model_that_calls({"look it up": [("mcp__lessons__learn_search", {"query": PROMPT})]})

    def work(request: dict[str, Any]) -> Blocks:
        if "look it up" in json.dumps(request["messages"]):
            return search(request)
        if PROMPT in last_text(request) or "tool_result" in last_text(request):
            steps = {
                "edit": tool_use("Write", file_path=str(chart), content="name: api\n"),
                "fail": tool_use("Bash", command=FAILS, description="Deploy"),
            }
            for name, call in steps.items():
                if name not in done:
                    done.append(name)
                    return [call]
        return [text("ok")]

    api.answer = work
    world = environment(api, home) | {"LESSONS_EMBEDDER": "none"}
    server = {"command": str(BIN / "lessons"), "args": ["mcp"], "env": {"LESSONS_EMBEDDER": "none"}}
    options = (
        "--session-id",
        session,
        "--mcp-config",
        json.dumps({"mcpServers": {"lessons": server}}),
    )
    tools = ("Write", "mcp__lessons__learn_search", "ToolSearch")
    with OpenSession(claude, team.root, world, *tools, *options) as open_session:
        open_session.say(PROMPT)
        open_session.answer()
        sent = json.dumps([request["messages"] for request in api.requests])
        open_session.say("look it up")
        open_session.answer()
    assert done == ["edit", "fail"]
    (found,) = results_of(api.requests, "mcp__lessons__learn_search")
    return sent, found


@pytest.mark.parametrize("held", [True, False])
def test_a_lesson_that_is_held_back_comes_by_no_door_and_mcp_says_so(
    claude: Path, api: MessagesApi, team: Vault, own_world: Path, first: str, held: bool
) -> None:
    session = session_that(held=held)
    sent, found = sent_after(claude, api, team, own_world, session)
    assert (ADVICE not in sent) is held
    assert ADVICE in found
    assert ("Held out in this session" in found) is held
    side = "held" if held else "drawn"
    recorded = [each for each in injections.records(team.index_dir) if each.get("share")]
    assert [(each["event"], each[side]) for each in recorded] == [
        (first, [LESSON]),  # which the edit then finds said, or held back
        (injections.FAILURE, [LESSON]),
    ]
    assert {each["session"] for each in recorded} == {session}
