"""An agent's settings say whether it has our MCP server; a shell finds our command, or its path."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.files import write
from vault_index.hotpath import agents, tools

SERVER = {"command": "/opt/bin/lessons", "args": ["mcp"]}
OTHER = {"command": "npx", "args": ["some-mcp"]}
OFF = SERVER | {"enabled": False}


def are_connected(name: str, folder: str) -> bool:
    """Whether an agent, "" for Claude Code, has our server in a folder."""
    return tools.is_connected(agents.named(name) if name else None, folder)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in (
        "CODEX_HOME",
        "COPILOT_HOME",
        "XDG_CONFIG_HOME",
        "CLAUDE_PLUGIN_ROOT",
        "CLAUDE_CONFIG_DIR",
    ):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "shop"
    folder.mkdir()
    return folder


@pytest.mark.parametrize(
    ("agent", "file", "key"),
    [
        ("", ".claude.json", "mcpServers"),
        ("gemini", ".gemini/settings.json", "mcpServers"),
        ("cursor", ".cursor/mcp.json", "mcpServers"),
        ("copilot", ".copilot/mcp-config.json", "mcpServers"),
        ("opencode", ".config/opencode/opencode.json", "mcp"),
    ],
)
def test_the_server_of_a_user(
    own_world: Path, project: Path, agent: str, file: str, key: str
) -> None:
    assert not are_connected(agent, str(project))
    for server, has_it in ((OTHER, False), (SERVER, True), (OFF, False)):
        write(own_world / file, json.dumps({key: {"mine": server}}))
        assert are_connected(agent, str(project)) is has_it
    one_list: dict[str, Any] = {"command": ["lessons", "mcp"], "type": "local"}
    write(own_world / file, json.dumps({key: {"mine": one_list}}))
    assert are_connected(agent, str(project))


def test_the_server_of_opencode_is_looked_for_where_its_variable_says(
    own_world: Path, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hooks went below XDG_CONFIG_HOME, and the server was looked for in `~/.config` alone."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    settings = json.dumps({"mcp": {"mine": SERVER}})
    write(tmp_path / "xdg" / "opencode" / "opencode.json", settings)
    assert are_connected("opencode", str(project))


def test_the_server_of_codex(own_world: Path, project: Path) -> None:
    settings = '[mcp_servers.lessons]\ncommand = "lessons"\nargs = ["mcp"]\n'
    write(own_world / ".codex" / "config.toml", settings)
    assert are_connected("codex", str(project))
    write(own_world / ".codex" / "config.toml", f"{settings}enabled = false\n")
    assert not are_connected("codex", str(project))


def test_a_server_of_one_project_is_that_projects(own_world: Path, project: Path) -> None:
    values = {"projects": {str(project): {"mcpServers": {"lessons": SERVER}}}}
    write(own_world / ".claude.json", json.dumps(values))
    assert are_connected("", str(project / "deep" / "down"))
    assert not are_connected("", str(project.parent))
    values["projects"][str(project)]["disabledMcpServers"] = ["lessons"]  # type: ignore[assignment]
    write(own_world / ".claude.json", json.dumps(values))
    assert not are_connected("", str(project))


def test_what_a_repository_shares_counts_once_its_user_approved_it(
    own_world: Path, project: Path
) -> None:
    write(project / ".mcp.json", json.dumps({"mcpServers": {"team": SERVER}}))
    assert not are_connected("", str(project))
    approved = {"projects": {str(project): {"enabledMcpjsonServers": ["team"]}}}
    write(own_world / ".claude.json", json.dumps(approved))
    assert are_connected("", str(project))
    (own_world / ".claude.json").unlink()
    write(own_world / ".claude" / "settings.json", '{"enableAllProjectMcpServers": true}')
    assert are_connected("", str(project))


def test_the_plugin_brings_the_server(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_PLUGIN_ROOT", "/plugins/lessons")
    assert are_connected("", str(project))


@pytest.mark.parametrize(
    "text", ["", "{", '["mcp"]', '{"mcpServers": ["mcp"]}', '{"projects": "mcp"}', "\0mcp"]
)
def test_settings_that_cannot_be_read_name_no_server(
    own_world: Path, project: Path, text: str
) -> None:
    write(own_world / ".claude.json", text)
    assert not are_connected("", str(project))
    assert not are_connected("plain", str(project))


def test_a_link_of_a_repository_is_not_followed(own_world: Path, project: Path) -> None:
    write(own_world / ".claude" / "settings.json", '{"enableAllProjectMcpServers": true}')
    os.mkfifo(project / "pipe")
    (project / ".mcp.json").symlink_to(project / "pipe")
    assert not are_connected("", str(project))


def test_a_shell_that_does_not_find_the_command_is_told_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = write(tmp_path / "bin" / "lessons", "#!/bin/sh\n")
    found.chmod(0o755)
    monkeypatch.setattr("sys.argv", [str(found.with_name("lessons-hook"))])
    monkeypatch.setenv("PATH", f"/no/such{os.pathsep}bin")
    assert tools.program() == str(found)
    monkeypatch.setenv("PATH", str(found.parent))
    assert tools.program() == "lessons"
