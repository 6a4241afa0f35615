"""Tools in the words of the APIs: their descriptions, calls of models, and a refusal of all tools."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from vault_index.llm.door import Tool, ToolCall, Turn

_TOOLS = re.compile(r"(?i)\btools?\b|\btool_choice\b|\bfunction.?call")


def described(tools: Iterable[Tool]) -> list[dict[str, Any]]:
    """Return tools as chat completions and Ollama want them."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
            },
        }
        for tool in tools
    ]


def names_of(turns: Iterable[Turn]) -> dict[str, str]:
    """Return the names of the tools that were called in a conversation, by the ids of the calls."""
    return {call.id: call.name for turn in turns for call in turn.calls}


def call_of(call_id: Any, name: Any, arguments: Any, number: int) -> ToolCall | None:
    """Return a call in a model's answer, None without a name; `number` makes an id where it has none."""
    if not isinstance(name, str) or not name:
        return None
    has_id = isinstance(call_id, str) and call_id
    return ToolCall(call_id if has_id else f"call_{number}", name, _object(arguments))


def speaks_of_tools(said: object) -> bool:
    """Whether a server that refused a question names its tools as the reason.

    No two servers say it alike. An error that names them for another reason comes again when the
    question is asked without them.
    """
    return _TOOLS.search(str(said)) is not None


def _object(arguments: Any) -> dict[str, Any] | None:
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments) if arguments.strip() else {}
        except (ValueError, RecursionError):
            return None
    return arguments if isinstance(arguments, dict) else None
