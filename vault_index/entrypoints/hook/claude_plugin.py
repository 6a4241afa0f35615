"""The plugin for Claude Code (`.claude-plugin/`): it brings the hooks and finds `lessons-hook`."""

from __future__ import annotations

import sys
from pathlib import Path

from vault_index.entrypoints.hook import claude_settings, program
from vault_index.errors import SettingsError

AGENT, NAME = "claude", "lessons@vault-index"
TOOL = "vault-index"  # uv and pipx name the environment of a program after its package


def enabled_by(project: Path | None) -> Path | None:
    """Return the settings that enable the plugin for the user and, if given, in a project, else None.

    A project's settings decide before the user's, and those that are not shared before both.
    """
    places = [claude_settings.claude_settings(None)]
    if project is not None:
        shared = claude_settings.claude_settings(project)
        places = [shared.with_name("settings.local.json"), shared, *places]
    for place in places:
        try:
            chosen = claude_settings.plugins(place).get(NAME)
        except SettingsError:  # reported where the settings are changed
            continue
        if isinstance(chosen, bool):
            return place if chosen else None
    return None


def shown(settings: Path) -> str:
    """Return the name of the plugin and the settings that enable it, as people read it."""
    return f"plugin {NAME} ({settings})"


def why_not_found() -> str:
    """Return why the plugin may not find our commands; "" if it will: see its `run.sh`."""
    own = Path.home() / ".local" / "bin" / program.COMMAND
    if own.is_file() or Path(sys.prefix).name == TOOL:
        return ""
    return program.why_not_found(program.COMMAND)
