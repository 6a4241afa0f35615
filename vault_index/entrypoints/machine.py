"""What only this machine knows about a vault: its watcher, and the hooks in the settings of agents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from vault_index.entrypoints.hook import agents, complaints
from vault_index.errors import VaultError
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
    wired = agents.wired(root)
    return {
        "installed": [str(place) for agent, _, place in wired if agent.runs_hooks(place)],
        "agents": sorted({agent.name for agent, _, place in wired if agent.runs_hooks(place)}),
        "last_errors": complaints.of(root, home)[-3:],
    }


def journal_hooks(project: Path | None = None) -> dict[str, Any]:
    """Return `hooks`: the settings of the agent whose hooks tell the journal of the end of turns."""
    folders = (None, project or Path.cwd())
    places = dict.fromkeys(place for folder in folders for place in agents.recording_in(folder))
    return {"hooks": list(map(str, places))}
