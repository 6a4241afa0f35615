"""Issue 59: an agent is one class in one table; hooks, commands, MCP, help and status follow from it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.support.commands import run
from tests.support.three_lessons import HEAP
from vault_index.hotpath import agents
from vault_index.vault import Vault

ONE_MORE = """
import sys
from vault_index.hotpath import agents
from vault_index.hotpath.agents import ALWAYS, FAILURES, PROMPT, Agent, Hook


class Reed(Agent):
    name = "reed"
    title = "Reed"
    events = {"onPrompt": PROMPT}
    fields = {"session_id": "chat"}
    hooks = {ALWAYS: (Hook("onPrompt", 5),), FAILURES: (Hook("onFailure", 5, "shell"),)}
    file = ".reed/settings.json"
    command_file = "commands/lessons-NAME.md"
    server_file = ".reed/settings.json"
    server_key = "mcpServers"


agents.AGENTS += (Reed(),)
if sys.argv[1] == "hook":
    from vault_index.entrypoints.hook.client import main
else:
    from vault_index.entrypoints.cli import main
sys.argv[:2] = [f"lessons-{sys.argv[1]}"]
main()
"""


def with_reed(program: str, *words: str, cwd: Path, stdin: str = "") -> str:
    return run(sys.executable, "-c", ONE_MORE, program, *words, cwd=cwd, stdin=stdin).out


@pytest.mark.slow
def test_an_agent_that_is_added_to_the_table_works_everywhere(team: Vault, own_world: Path) -> None:
    def cli(*words: str) -> str:
        return with_reed("cli", *words, cwd=team.root)

    settings = own_world / ".reed" / "settings.json"
    assert "reed" in cli("install", "--help")
    assert cli("install", "reed", "--failures") == f"{settings}: hooks installed\n"
    hooks = json.loads(settings.read_text())["hooks"]
    assert hooks.keys() == {"onPrompt", "onFailure"}
    assert hooks["onPrompt"][0]["hooks"][0]["command"].endswith("lessons-hook --agent reed")
    assert (settings.parent / "commands" / "lessons-learn.md").is_file()
    assert json.loads(cli("status", "--json"))["hooks"]["agents"] == ["reed"]

    assert "reed" in with_reed("hook", "--help", cwd=team.root)
    event = {"hook_event_name": "onPrompt", "chat": "one", "prompt": HEAP, "cwd": str(team.root)}
    answer = with_reed("hook", "--agent", "reed", cwd=team.root, stdin=json.dumps(event))
    output = json.loads(answer)["hookSpecificOutput"]
    assert output["hookEventName"] == "onPrompt"
    assert "node-heap.md" in output["additionalContext"]

    assert cli("uninstall", "reed") == f"{settings}: hooks removed\n"
    assert not settings.exists()


def test_each_agent_that_can_be_installed_says_where_and_when() -> None:
    for agent in agents.AGENTS:
        assert agent.title, agent.name
        if agent.hooks:
            assert agent.hooks[agents.ALWAYS], agent.name
            assert agent.file.count("/") >= 1, agent.name
            assert agent.tested_with, agent.name


def test_a_name_that_no_agent_has_is_told_which_there_are() -> None:
    with pytest.raises(ValueError, match=r"no agent is called 'reed': codex, gemini, .*, plain"):
        agents.normalise("reed", "{}")
