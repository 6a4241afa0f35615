"""The plugin for opencode: a file of JavaScript that asks our hook."""

from __future__ import annotations

import json
import re
from importlib import resources
from pathlib import Path

from vault_index.entrypoints.hook.section import Section

FILE = ("plugins", "lessons.js")
SECTION = Section("// lessons: plugin {stamp}, made by `lessons install opencode`", "// end")
_COMMAND = re.compile(r'(?m)^const COMMAND = (".*");$')


class Plugin:
    """The plugin's file: all of it is ours, unless somebody added to it."""

    events, journal_events = {"chat.message": 5}, dict[str, int]()  # no reader knows its sessions

    def install(self, settings: Path, _home: Path, command: str, *, journal: bool = False) -> bool:  # noqa: ARG002  # it has no hooks for it
        """Write the plugin. False if it is there already. Raises SettingsError."""
        code = resources.files("vault_index.entrypoints.hook").joinpath("opencode.js")
        line = f"const COMMAND = {json.dumps(command)};"
        return SECTION.put(settings, _COMMAND.sub(lambda _: line, code.read_text("utf-8")))

    def uninstall(self, settings: Path, _home: Path) -> bool:
        """Remove the plugin. False if it is not there. Raises SettingsError."""
        return SECTION.take_out(settings)

    def commands(self, settings: Path) -> dict[str, str]:
        """Return the program that the plugin asks, by event. Raises SettingsError."""
        line = _COMMAND.search(SECTION.text_in(settings) or "")
        return {"chat.message": json.loads(line[1])} if line else {}
