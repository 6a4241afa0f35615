"""A small team's vault, and what agents send."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import npm
from tests.support.files import commit
from tests.support.homes import locked, shared_folder
from tests.support.indexed import copy_of, full_text_vault
from tests.support.places import TESTS
from tests.support.three_lessons import FILES, HEAP
from vault_index.hotpath import agents
from vault_index.vault import Vault

_PACKAGES = {
    "codex": "@openai/codex",
    "gemini": "@google/gemini-cli",
    "opencode": "opencode-ai",
    "copilot": "@github/copilot",
}
PACKAGES = {
    name: f"{package}@{agents.named(name).tested_with}" for name, package in _PACKAGES.items()
}


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The real programs, installed once for all processes that run tests side by side."""
    folder = shared_folder(tmp_path_factory) / "other-agents"
    folder.mkdir(exist_ok=True)
    installed = {}
    for name, package in PACKAGES.items():
        (folder / name).mkdir(exist_ok=True)
        with locked(folder / name):
            installed[name] = npm.program(name, package, folder / name)
    return installed


@pytest.fixture(scope="session")
def team_shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One index for all of these tests, which copy it."""
    return full_text_vault(tmp_path_factory.mktemp("shelf") / "team", FILES)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project to type commands in, and no agent's own variable set."""
    for name in ("CODEX_HOME", "COPILOT_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def team(team_shelf: Path, tmp_path: Path, text_only: None) -> Vault:
    """A vault of three lessons, whose last commit is about Docker's layers."""
    vault = copy_of(team_shelf, tmp_path / "team")
    commit(vault.root, "docker: stop rebuilding every layer when one source file changes")
    return vault


def recorded(agent: str) -> Any:
    """Return what an agent sends at each moment, and the `prompt_id` that its prompt has for us."""
    return json.loads((TESTS / "agents" / "events" / f"{agent}.json").read_text("utf-8"))


def sent(agent: str, moment: str, cwd: Path, prompt: str = HEAP) -> Any:
    """Return what an agent sends at a moment: `prompt`, `start`, `end` of a turn,
    `failure` or `success` of a command."""
    text = json.dumps(recorded(agent)[moment]).replace("PROMPT", prompt).replace("CWD", str(cwd))
    return json.loads(text)


def block_in(agent: str, moment: str, out: str) -> str:
    """Return the block in an answer, which must have no other key than the agent reads.

    It is Claude Code's form, with the name that the agent gave its event, unless it is listed here.
    """
    if agent in ("plain", "opencode"):
        return out.removesuffix("\n")
    answer = json.loads(out)
    if agent == "cursor":
        assert answer.pop("continue", True) is True
        assert answer.keys() == {"additional_context"}
        return str(answer["additional_context"])
    if agent == "copilot":
        assert answer.keys() == {"additionalContext"}
        return str(answer["additionalContext"])
    assert answer.keys() == {"hookSpecificOutput"}
    output = answer["hookSpecificOutput"]
    assert output.keys() == {"hookEventName", "additionalContext"}
    assert output["hookEventName"] == recorded(agent)[moment]["hook_event_name"]
    return str(output["additionalContext"])
