"""What only this machine knows about a vault: its watcher, and the hooks in the agent's settings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from vault_index.entrypoints.hook import claude_plugin, claude_settings, complaints
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
    places = [claude_settings.claude_settings(None), claude_settings.claude_settings(root)]
    installed = [str(place) for place in places if claude_settings.is_installed(place)]
    return {
        "installed": installed + _plugin(root),
        "last_errors": complaints.of(root, home)[-3:],
    }


def journal_hooks(project: Path | None = None) -> dict[str, Any]:
    """Return `hooks`: the settings of the agent whose hooks tell the journal of the end of turns."""
    folders = (None, project or Path.cwd())
    places = dict.fromkeys(claude_settings.claude_settings(folder) for folder in folders)
    recording = [str(place) for place in places if claude_settings.records_sessions(place)]
    return {"hooks": recording + _plugin(folders[1])}


def _plugin(project: Path | None) -> list[str]:
    """Return the plugin, whose hooks are all of ours, where it is enabled."""
    settings = claude_plugin.enabled_by(project)
    return [claude_plugin.shown(settings)] if settings else []
