"""The plugin's files agree with the package, and keep to the limits of skills and marketplaces."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import anyio
import frontmatter
import pytest

from tests.support.places import PLUGIN, REPO
from vault_index.entrypoints import agents, wording
from vault_index.entrypoints.mcp.agent import ServedAgent
from vault_index.entrypoints.mcp.journal import JOURNAL_TOOL
from vault_index.entrypoints.mcp.learning import ProposedLesson
from vault_index.entrypoints.mcp.tools import build

SKILL = PLUGIN / "skills" / "lessons" / "SKILL.md"
TEXTS = sorted(PLUGIN.rglob("*.md"))
SPECIFIED = {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}


def values(path: Path) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return parsed


def test_all_name_the_version_of_the_package() -> None:
    package = tomllib.loads((REPO / "pyproject.toml").read_text("utf-8"))["project"]
    (listed,) = values(REPO / ".claude-plugin" / "marketplace.json")["plugins"]
    latest = re.search(r"(?m)^## (\S+)", (REPO / "CHANGELOG.md").read_text("utf-8"))
    assert latest
    versions = {
        "the plugin": values(PLUGIN / ".claude-plugin" / "plugin.json")["version"],
        "the marketplace": listed["version"],
        "the changelog": latest[1],
    }
    assert versions == dict.fromkeys(versions, package["version"])


def test_its_hooks_are_those_that_install_writes() -> None:
    hooks = values(PLUGIN / "hooks" / "hooks.json")["hooks"]
    modes = {
        "UserPromptSubmit": "prompt",
        "SessionStart": "start",
        "PostToolUseFailure": "failure",
        "PreToolUse": "prompt",
        "SubagentStart": "prompt",
    }
    hooks_of = agents.CLAUDE.profile.hooks
    wanted = {hook.event: hook for hook in (*hooks_of["always"], *hooks_of["journal"])}
    assert set(hooks) == set(wanted)
    for event, groups in hooks.items():
        ((hook,),) = [group["hooks"] for group in groups]
        assert groups[0].get("matcher", "") == wanted[event].tools
        mode = modes.get(event, "end")
        assert hook == {
            "type": "command",
            "command": "sh",
            "args": ["${CLAUDE_PLUGIN_ROOT}/run.sh", mode],  # without a shell between
            "timeout": wanted[event].timeout,
        }


def test_the_skill_keeps_to_the_specification() -> None:
    skill = frontmatter.loads(SKILL.read_text("utf-8"))
    assert set(skill.metadata) <= SPECIFIED
    assert skill["name"] == SKILL.parent.name
    description = str(skill["description"])
    assert len(description) <= 1024
    assert not re.search(r"[<>]", description)
    assert "Use when" in description  # in the third person: what it does, and when
    assert len(skill.content.splitlines()) < 500


@pytest.mark.parametrize("file", TEXTS, ids=lambda file: file.name)
def test_links_lead_to_files_of_the_plugin(file: Path) -> None:
    for link in re.findall(r"\]\(([^)]+)\)", file.read_text("utf-8")):
        assert (file.parent / link).is_file(), link


def test_commands_are_called_by_people_only() -> None:
    """So they take no room in the context of a session; the skill is what an agent reads."""
    commands = sorted((PLUGIN / "commands").glob("*.md"))
    assert [file.stem for file in commands] == ["learn", "review", "search", "tend"]
    for file in commands:
        assert frontmatter.loads(file.read_text("utf-8"))["disable-model-invocation"] is True


@pytest.mark.parametrize(
    ("name", "file"),
    # a command's file may not be called skill.md: Claude Code takes its folder for a skill
    [
        *((wording.LEARN, "commands/learn.md"), (wording.TEND, "commands/tend.md")),
        (wording.SKILL, "skills/skill/SKILL.md"),
    ],
)
def test_an_agent_is_told_the_same_everywhere(name: str, file: str) -> None:
    command = frontmatter.loads((PLUGIN / file).read_text("utf-8"))
    assert command.content.strip() == wording.instructions(name, "$ARGUMENTS").strip()


def test_what_is_taught_is_there() -> None:
    """Each tool that the skill, a command or the README names is one of the server's."""
    listed = anyio.run(build(ServedAgent("/")).list_tools)
    tools = {tool.name for tool in listed} | {JOURNAL_TOOL}
    named = {
        name
        for file in TEXTS
        for name in re.findall(r"`([a-z]+(?:_[a-z]+)+)`", file.read_text("utf-8"))
    }
    assert named <= tools | {*ProposedLesson.model_fields} | {
        "bug_fix",
        "code_pattern",
        "project_rule",
    }
    assert {"learn_search", "search_journal"} <= named
