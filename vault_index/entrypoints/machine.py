"""What only this machine knows about a vault: its watcher, and the hooks in the settings of agents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from vault_index.entrypoints.hook import agents, claude_plugin
from vault_index.errors import VaultError
from vault_index.store import complaints
from vault_index.watch import launch

if TYPE_CHECKING:
    from vault_index.vault import Vault


def state(vault: Vault) -> dict[str, Any]:
    """Return `watcher` (None if it is not running) and `hooks`: where they are, and their last errors."""
    return {"watcher": _watcher(vault.root), "hooks": _hooks(vault.root, vault.config.home)}


def _watcher(root: Path) -> dict[str, Any] | None:
    try:
        return launch.status(root)
    except VaultError as error:
        return {"trouble": f"{error.message}; {error.hint}"}


def _hooks(root: Path, home: Path) -> dict[str, Any]:
    """Return where the hooks are installed, and the last lines of their log about this vault."""
    wired = [(agent, place) for agent, _, place in agents.wired(root) if agent.runs_hooks(place)]
    plugin = _plugin(root)
    names = {agent.name for agent, _ in wired} | {claude_plugin.AGENT for _ in plugin}
    return {
        "installed": [str(place) for _, place in wired] + plugin,
        "agents": sorted(names),
        "last_errors": complaints.of(root, home)[-3:],
    }


def journal_hooks(project: Path | None = None) -> dict[str, Any]:
    """Return `hooks`: the settings of the agent whose hooks tell the journal of the end of turns."""
    folders = (None, project or Path.cwd())
    places = dict.fromkeys(place for folder in folders for place in agents.recording_in(folder))
    return {"hooks": list(map(str, places)) + _plugin(folders[1])}


def _plugin(project: Path | None) -> list[str]:
    """Return the plugin, whose hooks are all of ours, where it is enabled."""
    settings = claude_plugin.enabled_by(project)
    return [claude_plugin.shown(settings)] if settings else []
