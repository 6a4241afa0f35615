"""With the real agents: what they search for at their shells by themselves is answered and counted.

The programs come from npm; their models are stubs on loopback, so nothing leaves the machine.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agents.model_apis import ModelApis
from tests.agents.test_real_agents import GEMINI, turn, world
from tests.support.claude_code import environment, run_in
from tests.support.commands import BIN, run
from tests.support.files import write
from tests.support.messages_api import MessagesApi, model_that_calls, results_of
from tests.support.three_lessons import HEAP
from vault_index.entrypoints import agents
from vault_index.vault import Vault
from vault_index.watch import launch

ASKED = "the nightly build is red again"
SEARCH, SHOW = f'lessons search "{HEAP}"', "lessons show node-heap"
ENTRY = {
    "title": "Never retry ERR_UPLOAD_409 in upload_batch()",
    "type": "bug_fix",
    "what_to_do": "Leave a 409 of `upload_batch()` alone, the server has taken the batch already.",
    "quotes": [ASKED],
}
PROPOSE = f"echo '{json.dumps([ENTRY])}' | lessons propose"


@pytest.fixture(autouse=True)
def no_watcher_stays(own_world: Path) -> Iterator[None]:
    yield
    launch.stop()


def counts(team: Vault) -> tuple[int, int]:
    """Return how often `status` says that agents searched and read in the last seven days."""
    week = run("lessons", "status", "--json", cwd=team.root).json["injections"]["weeks"][0]
    return week["searches"], week["reads"]


@pytest.mark.claude_code
@pytest.mark.timeout(900)
def test_claude_code_searches_reads_and_proposes_unasked_and_status_counts_it(
    claude: Path, api: MessagesApi, team: Vault, own_world: Path
) -> None:
    """Issue 54, "Must show", and item 2: the rules that `install` offers are those that it needs."""
    run("lessons", "install", "claude", cwd=team.root)
    settings = own_world / ".claude" / "settings.json"
    agents.CLAUDE.allow(settings)
    before = counts(team)
    calls = [SEARCH, SHOW, PROPOSE]
    api.answer = model_that_calls({ASKED: [("Bash", {"command": each}) for each in calls]})
    environ = environment(api, own_world) | {"LESSONS_EMBEDDER": "none"}
    said = run_in(environ, claude, "-p", ASKED, cwd=team.root)
    assert said.out.strip() == "ok"
    searched, read, proposed = results_of(api.requests, "Bash")
    assert searched.startswith("<lessons>\n")
    assert "(ID devops/ci-cd/node-heap)" in searched
    assert "%" not in searched
    assert "raise the heap: NODE_OPTIONS" in read
    assert "\n> When the build dies" in read
    assert "without asking" not in proposed
    assert run("lessons", "review", "--json", cwd=team.root).json, proposed
    assert before == (0, 0)
    assert counts(team) == (1, 1)
    shown = run("lessons", "status", cwd=team.root).out
    assert "in 7 days: 1 search and 1 read of their own" in shown


@pytest.fixture
def apis() -> Iterator[ModelApis]:
    with ModelApis() as serving:
        yield serving


def commands_of(agent: str, apis: ModelApis, home: Path) -> tuple[dict[str, str], list[str]]:
    """Return an agent's world and words, with the stub as its model and no question before a command."""
    if agent == "codex":
        stub = f'name = "stub"\nbase_url = "{apis.url}/v1"\nwire_api = "responses"\n'
        text = f'model = "m"\nmodel_provider = "stub"\n\n[model_providers.stub]\n{stub}'
        write(home / ".codex" / "config.toml", text)
        unsafe = ["--skip-git-repo-check", "--sandbox", "danger-full-access"]
        return world(home), ["exec", *unsafe]
    if agent == "gemini":
        write(home / ".gemini" / "settings.json", json.dumps(GEMINI))
        environ = world(home, GEMINI_API_KEY="dummy", GOOGLE_GEMINI_BASE_URL=apis.url)
        return environ, ["-m", "gemini-2.5-flash", "--skip-trust", "--yolo", "-p"]
    if agent == "copilot":
        provider = {"COPILOT_PROVIDER_BASE_URL": f"{apis.url}/v1", "COPILOT_MODEL": "m"}
        alone = {"COPILOT_OFFLINE": "true", "COPILOT_AUTO_UPDATE": "false"}
        return world(home, **alone, **provider), ["--trust-folder", "--allow-all-tools", "-s", "-p"]
    stub_provider: dict[str, Any] = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "stub",
        "options": {"baseURL": f"{apis.url}/v1", "apiKey": "dummy"},
        "models": {"m": {"name": "m", "tool_call": True}},
    }
    values = {
        "model": "stub/m",
        "provider": {"stub": stub_provider},
        "permission": {"bash": "allow"},
    }
    write(home / ".config" / "opencode" / "opencode.json", json.dumps(values))
    quiet = {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"}
    return world(home, **quiet), ["run"]


@pytest.mark.other_agents
@pytest.mark.timeout(600)
@pytest.mark.parametrize("agent", ["codex", "gemini", "copilot", "opencode"])
def test_the_shell_of_each_agent_is_known(
    programs: dict[str, Path], apis: ModelApis, team: Vault, own_world: Path, agent: str
) -> None:
    """By the variables that the real program sets for the commands that it runs."""
    environ, words = commands_of(agent, apis, own_world)
    kept, command = own_world / "searched.txt", f'{BIN / "lessons"} search "{HEAP}"'
    waiting = [f"{command} > {kept}"]

    def next_command(request: dict[str, Any]) -> str:
        return waiting.pop() if waiting and request.get("tools") else ""

    apis.command = next_command
    turn(environ, team.root, programs[agent], *words, ASKED)
    assert "(ID devops/ci-cd/node-heap)" in kept.read_text()
    assert counts(team) == (1, 0)
