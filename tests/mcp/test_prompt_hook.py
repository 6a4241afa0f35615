"""The agent's prompt hook through the server: the answer of `lessons-hook`, and never twice."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from mcp import Client

from tests.support.commands import run
from tests.support.files import MakeVault
from tests.support.indexed import kept_on
from tests.support.mcp_servers import call
from tests.support.three_lessons import FILES
from tests.support.watchers import watched, watchers_of
from vault_index.entrypoints.mcp.agent import Agent
from vault_index.entrypoints.mcp.server import build
from vault_index.vault import Vault

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
HEAP = "our build dies with heap out of memory"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def team(make_vault: MakeVault, with_model: Path, shelves: Path, tmp_path: Path) -> Iterator[Vault]:
    """A vault of three lessons with the real model and its watcher."""
    make = partial(make_vault, FILES, name="first")
    vault = kept_on(shelves / "for-mcp-hook", make, tmp_path / "team")
    with watched(vault):
        yield vault


def context(answer: str) -> str:
    """Return what a hook's answer injects, "" for silence."""
    return str(json.loads(answer)["hookSpecificOutput"]["additionalContext"]) if answer else ""


def command_hook(vault: Vault, **event: str) -> str:
    stdin = json.dumps({"hook_event_name": "UserPromptSubmit", "cwd": str(vault.root), **event})
    return run("lessons-hook", cwd=vault.root, stdin=stdin).out


async def test_it_answers_as_the_command_does(team: Vault) -> None:
    async with Client(build(Agent(str(team.root)))) as client:
        assert "on_prompt" not in [tool.name for tool in (await client.list_tools()).tools]
        answer = await call(client, "on_prompt", prompt=HEAP, session_id="one", prompt_id="a")
        assert context(answer) == context(command_hook(team, prompt=HEAP, session_id="two"))
        assert "Node runs out of memory" in context(answer)
        for prompt in ("thanks, looks good", "/clear", "how do I fold a paper crane?"):
            assert await call(client, "on_prompt", prompt=prompt, session_id="one") == ""


@pytest.mark.parametrize("ids", [{"prompt_id": "p1"}, {}])
async def test_a_prompt_that_both_hooks_see_gets_it_once(team: Vault, ids: dict[str, str]) -> None:
    async with Client(build(Agent(str(team.root)))) as client:
        asked = {"prompt": HEAP, "session_id": "one", **ids}
        first = await call(client, "on_prompt", **asked)
        assert context(first)
        if ids:  # the agent's own id of the prompt; else the times of both processes decide
            assert command_hook(team, **asked) == ""
        assert await call(client, "on_prompt", **asked) == ""  # the session has that lesson


async def test_the_command_hook_first(team: Vault) -> None:
    async with Client(build(Agent(str(team.root)))) as client:
        asked = {"prompt": HEAP, "session_id": "one", "prompt_id": "p1"}
        assert context(command_hook(team, **asked))
        assert await call(client, "on_prompt", **asked) == ""


async def test_placeholders_without_a_value_and_folders_without_a_vault(
    team: Vault, tmp_path: Path
) -> None:
    async with Client(build(Agent(str(team.root)))) as client:
        empty = {"session_id": "${session_id}", "cwd": "${cwd}", "prompt_id": ""}
        assert context(await call(client, "on_prompt", prompt=HEAP, **empty))
        assert await call(client, "on_prompt", prompt=HEAP, cwd=str(tmp_path)) == ""


async def test_a_watcher_that_hangs_holds_up_no_prompt(
    team: Vault, own_world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LESSONS_DEADLINE_MS", "300")
    [watcher] = watchers_of(team.root)
    os.kill(watcher, signal.SIGSTOP)
    try:
        async with Client(build(Agent(str(team.root)))) as client:
            assert await call(client, "on_prompt", prompt=HEAP) == ""
        assert "no answer in 285 ms" in (own_world / "hook.log").read_text()
    finally:
        os.kill(watcher, signal.SIGCONT)
