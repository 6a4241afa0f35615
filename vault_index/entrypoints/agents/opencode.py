"""The plugin for opencode: a file of JavaScript that asks our hook."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from vault_index.entrypoints.agents.hook_settings import HookSettings
from vault_index.entrypoints.agents.section import MarkedSection

SECTION = MarkedSection("// lessons: plugin {stamp}, made by `lessons install opencode`", "// end")
_COMMAND = re.compile(r'(?m)^const COMMAND = (".*");$')


class Plugin(HookSettings):
    """The plugin's file: all of it is ours, unless somebody added to it."""

    def install(self, settings: Path, command: str, _wanted: Sequence[str] = ()) -> bool:
        code = resources.files("vault_index.entrypoints.agents").joinpath("opencode.js")
        line = f"const COMMAND = {json.dumps(command)};"
        return SECTION.put(settings, _COMMAND.sub(lambda _: line, code.read_text("utf-8")))

    def uninstall(self, settings: Path) -> bool:
        return SECTION.take_out(settings)

    def commands(self, settings: Path) -> dict[str, str]:
        line = _COMMAND.search(SECTION.text_in(settings) or "")
        return dict.fromkeys(self.events(), json.loads(line[1])) if line else {}
