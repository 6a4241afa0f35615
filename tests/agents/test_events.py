"""What each agent sends, recorded, and that it gets exactly the form it reads, or nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.agents.conftest import block_in, recorded, sent
from tests.support.commands import Ran, run
from tests.support.three_lessons import HEAP
from vault_index.hotpath import agents
from vault_index.vault import Vault

NAMES = [agent.name for agent in agents.translated()]


def hook(agent: str, stdin: Any, cwd: Path, **env: str) -> Ran:
    """Send an event to the real hook; it ends with 0 and complains to nobody."""
    text = stdin if isinstance(stdin, str) else json.dumps(stdin)
    done = run("lessons-hook", "--agent", agent, cwd=cwd, stdin=text, env=env)
    assert done.err == ""
    return done


@pytest.mark.slow
@pytest.mark.parametrize("agent", NAMES)
def test_a_prompt_gets_the_lesson_that_matters(team: Vault, agent: str) -> None:
    answer = hook(agent, sent(agent, "prompt", team.root), team.root.parent)
    block = block_in(agent, "prompt", answer.out)
    assert block.startswith("<lessons>")
    assert block.endswith("</lessons>")
    assert "lessons/devops/ci-cd/node-heap.md" in block
    assert "layers.md" not in block  # which Gemini has in front of its first prompt
    if agent != "plain":  # it has no session: a lesson comes once in one
        again = sent(agent, "prompt", team.root)
        assert hook(agent, again, team.root.parent).out == ""


@pytest.mark.slow
@pytest.mark.parametrize("agent", NAMES)
def test_a_session_starts_with_what_the_project_does(team: Vault, agent: str) -> None:
    answer = hook(agent, sent(agent, "start", team.root), team.root.parent)
    assert "lessons/devops/docker/layers.md" in block_in(agent, "start", answer.out)


@pytest.mark.parametrize("agent", NAMES)
def test_silence_is_no_output_at_all(team: Vault, own_world: Path, agent: str) -> None:
    chatter = sent(agent, "prompt", team.root, "thanks, looks good")
    assert hook(agent, chatter, team.root).out == ""
    assert hook(agent, sent(agent, "prompt", Path("/")), team.root.parent).out == ""
    assert hook(agent, sent(agent, "end", team.root), team.root).out == ""
    assert not (own_world / "hook.log").exists()


@pytest.mark.slow
def test_after_gemini_compressed_a_conversation_a_lesson_comes_again(team: Vault) -> None:
    def asks(timestamp: str) -> str:
        event = sent("gemini", "prompt", team.root) | {"timestamp": timestamp}
        return hook("gemini", event, team.root).out

    assert asks("2026-11-22T15:36:39Z") != ""
    assert asks("2026-11-22T15:37:39Z") == ""
    event = sent("gemini", "start", team.root) | {"hook_event_name": "PreCompress"}
    assert hook("gemini", event | {"trigger": "auto", "source": None}, team.root).out == ""
    assert "node-heap.md" in asks("2026-11-22T15:38:39Z")


def test_a_codex_agent_that_prompts_its_subagent_gets_nothing(team: Vault) -> None:
    asked = sent("codex", "prompt", team.root) | {"agent_id": "a1", "agent_type": "worker"}
    assert hook("codex", asked, team.root).out == ""


# what the names become


@pytest.mark.parametrize("agent", NAMES)
def test_the_ids_that_tell_prompts_apart(agent: str) -> None:
    event = agents.normalise(agent, json.dumps(sent(agent, "prompt", Path("/p"))))
    assert event.get("prompt_id") == recorded(agent)["prompt_id"]
    assert event["session_id"]
    assert str(event["prompt"]).strip() == HEAP
    assert event["cwd"] == "/p"
