"""The agents beside Claude Code: where each keeps its hooks, and how they are put there."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Sequence
from contextlib import suppress
from importlib import resources
from pathlib import Path

from vault_index.entrypoints.agents import section
from vault_index.entrypoints.agents.hook_settings import (
    ALWAYS,
    FAILURES,
    JOURNAL,
    Agent,
    Hook,
    HookSettings,
)
from vault_index.entrypoints.agents.section import MarkedSection
from vault_index.errors import SettingsError

# The plugin for opencode: a file of JavaScript that asks our hook.

OPENCODE_SECTION = MarkedSection(
    "// lessons: plugin {stamp}, made by `lessons install opencode`", "// end"
)
_COMMAND = re.compile(r'(?m)^const COMMAND = (".*");$')


class Plugin(HookSettings):
    """The plugin's file: all of it is ours, unless somebody added to it."""

    def install(self, settings: Path, command: str, _wanted: Sequence[str] = ()) -> bool:
        code = resources.files("vault_index.entrypoints.agents").joinpath("opencode.js")
        line = f"const COMMAND = {json.dumps(command)};"
        return OPENCODE_SECTION.put(settings, _COMMAND.sub(lambda _: line, code.read_text("utf-8")))

    def uninstall(self, settings: Path) -> bool:
        return OPENCODE_SECTION.take_out(settings)

    def commands(self, settings: Path) -> dict[str, str]:
        line = _COMMAND.search(OPENCODE_SECTION.text_in(settings) or "")
        return dict.fromkeys(self.events(), json.loads(line[1])) if line else {}


_USUAL = [Hook("UserPromptSubmit", 5), Hook("SessionStart", 10)]  # seconds
_CODEX = HookSettings(
    "Codex",
    # its dialog of trust shows the message as the name of the hook: else "Unnamed hook"
    {
        ALWAYS: [
            Hook("UserPromptSubmit", 5, says="find what the team learned about a prompt"),
            Hook("SessionStart", 10, says="find what the team learned about this project"),
            Hook("SubagentStart", 5, says="tell a subagent how many lessons there are"),
        ],
        JOURNAL: [Hook("Stop", 5, says="note that a turn ended")],
        FAILURES: [Hook("PostToolUse", 5, "Bash", says="find a lesson on a command that failed")],
    },
    arguments=" --agent codex",
    only=("description", "hooks"),
)
_GEMINI = HookSettings(
    "Gemini CLI",
    {
        ALWAYS: [  # milliseconds
            *(Hook("BeforeAgent", 5000), Hook("SessionStart", 10_000), Hook("PreCompress", 5000)),
        ],
        FAILURES: [Hook("AfterTool", 5000, "run_shell_command")],
    },
    arguments=" --agent gemini",
    comments=True,
)
_CURSOR = HookSettings(
    "Cursor",
    {
        ALWAYS: [Hook("beforeSubmitPrompt", 5), Hook("sessionStart", 10)],  # seconds
        FAILURES: [Hook("postToolUse", 5, "Shell")],
    },
    arguments=" --agent cursor",
    grouped=False,
    comments=True,
    beside={"version": 1},
)
_COPILOT = HookSettings(
    "Copilot CLI",
    # by these names it speaks as Claude Code
    {ALWAYS: _USUAL, FAILURES: [Hook("PostToolUse", 5, "bash|powershell")]},
    arguments=" --agent copilot",
    beside={"version": 1},
)
# no reader knows its sessions, and it looks for failures by itself
_PLUGIN = Plugin("opencode", {ALWAYS: [Hook("chat.message", 0)]})


def _memory_of_codex(hooks: Path) -> str:
    with suppress(SettingsError, ValueError):
        values = tomllib.loads(section.read(hooks.with_name("config.toml")) or "")
        if values.get("features", {}).get("memories") is True:
            return "Codex then seldom asks an MCP server; the hooks bring the team's lessons all the same"
    return ""


_TRUST = "Codex runs new hooks only when you have trusted them: start codex, and review them"
_COPILOT_FILE, _OPENCODE_FILE = "hooks/lessons.json", "opencode/plugins/lessons.js"

CODEX = Agent(
    *("codex", _CODEX, ".codex/hooks.json", "CODEX_HOME"), to_do=_TRUST, memory=_memory_of_codex
)
GEMINI = Agent("gemini", _GEMINI, ".gemini/settings.json")
CURSOR = Agent("cursor", _CURSOR, ".cursor/hooks.json")
COPILOT = Agent(
    *("copilot", _COPILOT, f".github/{_COPILOT_FILE}"),
    *("COPILOT_HOME", f".copilot/{_COPILOT_FILE}"),
)
OPENCODE = Agent(
    *("opencode", _PLUGIN, f".{_OPENCODE_FILE}"),
    *("XDG_CONFIG_HOME", f".config/{_OPENCODE_FILE}"),
)
