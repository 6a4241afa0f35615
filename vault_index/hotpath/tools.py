"""Find an agent's ways to ask for lessons: our MCP server in its settings, our command for its shell.

Only the start of a session and of a subagent looks. Settings that cannot be read name no server: the
command works all the same. Standard library only.
"""

from __future__ import annotations

import os
import sys

from vault_index.hotpath import index_files, protocol

TYPE_CHECKING = False  # typing takes 3 ms to load
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from vault_index.hotpath.agents import Agent

PROGRAM = "lessons"
PLUGIN_VARIABLE, PLUGIN_SERVER = "CLAUDE_PLUGIN_ROOT", "plugin:lessons:lessons"
MAX_BYTES = 8 * 1024 * 1024  # of a settings file: Claude Code's has the history of all projects


def program() -> str:
    """Return the command by which a shell finds us: its name if that is on the PATH, else its path."""
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        if os.path.isabs(folder) and os.access(f"{folder}/{PROGRAM}", os.X_OK):
            return PROGRAM
    beside = f"{os.path.dirname(os.path.abspath(sys.argv[0]))}/{PROGRAM}"
    return beside if os.access(beside, os.X_OK) else PROGRAM


_NOT_THEIR_FORM = (OSError, ValueError, RecursionError, AttributeError, TypeError)


def is_connected(agent: Agent | None, folder: str) -> bool:
    """Whether an agent, None for Claude Code, has our MCP server when it works in a folder."""
    try:
        return _other_has(agent, folder) if agent else _claude_has(folder)
    except _NOT_THEIR_FORM:
        return False


def _other_has(agent: Agent, folder: str) -> bool:
    file = agent.server_file
    if not file:
        return False
    read = _toml if file.endswith(".toml") else _json
    scopes = read(agent.of_user(file)), read(f"{os.path.abspath(folder)}/{file}", of_user=False)
    return any(_ours(values.get(agent.server_key)) for values in scopes)


def _claude_has(folder: str) -> bool:
    config = os.environ.get("CLAUDE_CONFIG_DIR")
    values = _json(f"{config or os.path.expanduser('~')}/.claude.json")
    all_projects = values.get("projects") or {}
    folders = [*_upwards(os.path.abspath(folder))]
    projects = [all_projects[each] for each in folders if each in all_projects]
    disabled = {name for each in projects for name in each.get("disabledMcpServers") or ()}
    if os.environ.get(PLUGIN_VARIABLE):  # the hook is the plugin's, which brings the server
        return PLUGIN_SERVER not in disabled
    for scope in (values, *projects):
        if any(name not in disabled for name in _ours(scope.get("mcpServers"))):
            return True
    shared = {name for each in folders for name in _ours(_in_project(f"{each}/.mcp.json"))}
    return bool(shared and shared & _approved(config, folders, projects) - disabled)


def _in_project(path: str) -> Any:
    return _json(path, of_user=False).get("mcpServers")


def _approved(config: str | None, folders: list[str], projects: list[Any]) -> set[str]:
    """Return the servers of a project's `.mcp.json` that its user has approved."""
    settings = [_json(f"{config or os.path.expanduser('~/.claude')}/settings.json"), *projects]
    settings += [_json(f"{each}/.claude/settings.local.json", of_user=False) for each in folders]
    names = {name for each in settings for name in each.get("enabledMcpjsonServers") or ()}
    if any(each.get("enableAllProjectMcpServers") is True for each in settings):
        names.update(name for each in folders for name in _ours(_in_project(f"{each}/.mcp.json")))
    return names


def _ours(servers: Any) -> list[str]:
    """Return the names of our own servers in a settings file."""
    return [
        name
        for name, server in (servers.items() if isinstance(servers, dict) else ())
        if isinstance(server, dict) and _is_ours(server)
    ]


def _is_ours(server: dict[str, Any]) -> bool:
    command, arguments = server.get("command"), server.get("args")
    words = [command] if isinstance(command, str) else command
    words = [*(words or ()), *(arguments or ())]
    is_off = server.get("enabled") is False or server.get("disabled") is True
    return (
        len(words) > 1 and os.path.basename(words[0]) == PROGRAM and "mcp" in words and not is_off
    )


def _upwards(folder: str) -> Iterator[str]:
    while True:
        yield folder
        above = os.path.dirname(folder)
        if above == folder:
            return
        folder = above


def _json(path: str, *, of_user: bool = True) -> dict[str, Any]:
    text = _text(path, of_user)
    values = protocol.loads(text) if "mcp" in text.casefold() else {}
    return values if isinstance(values, dict) else {}


def _toml(path: str, *, of_user: bool = True) -> dict[str, Any]:
    text = _text(path, of_user)
    if "mcp_servers" not in text:
        return {}
    import tomllib

    return tomllib.loads(text)


def _text(path: str, of_user: bool) -> str:
    """Return the text of a file, "" for none; a link of a repository may lead to anything."""
    try:
        data = index_files.read(path, MAX_BYTES + 1, follow=of_user)
    except OSError:
        return ""
    text = data.decode("utf-8", "replace").removeprefix("\ufeff")
    return text if len(data) <= MAX_BYTES else ""
