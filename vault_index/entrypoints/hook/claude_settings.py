"""The hooks in the settings of Claude Code."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from vault_index.entrypoints.hook.hook_settings import HookSettings

EVENTS = {"UserPromptSubmit": 5, "SessionStart": 10}  # timeout in seconds, past our own deadline
# of the journal, only where asked for; SessionEnd waits no longer than its own budget for it
JOURNAL_EVENTS = {"Stop": 5, "SubagentStop": 5, "PreCompact": 5, "SessionEnd": 5}

CLAUDE = HookSettings("Claude Code", EVENTS, JOURNAL_EVENTS, exec_form=True)
install, uninstall, commands = CLAUDE.install, CLAUDE.uninstall, CLAUDE.commands


def claude_settings(project: Path | None) -> Path:
    """Return the settings.json of a project; without one the user's (`$CLAUDE_CONFIG_DIR`)."""
    if project is not None:
        return project / ".claude" / "settings.json"
    named = os.environ.get("CLAUDE_CONFIG_DIR")
    return (Path(named) if named else Path.home() / ".claude") / "settings.json"


def plugins(settings: Path) -> dict[str, Any]:
    """Return the plugins that settings.json enables or disables. Raises SettingsError."""
    chosen = CLAUDE.read(settings).get("enabledPlugins")
    return chosen if isinstance(chosen, dict) else {}


def are_disabled(settings: Path) -> bool:
    """Whether settings.json switches all hooks off. Raises SettingsError."""
    return CLAUDE.read(settings).get("disableAllHooks") is True
