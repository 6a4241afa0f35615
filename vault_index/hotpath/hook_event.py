"""An agent's event as its hook sends it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from vault_index.hotpath import agents

PROMPT, FAILURE = "UserPromptSubmit", "PostToolUseFailure"
EDIT = "FileEdit"  # an agent is about to edit a file; `said` is its path
SUBAGENT = "SubagentStart"  # with the prompt of the agent that starts it
ASKED = "PreToolUse"  # before a subagent starts, with its prompt
START = "SessionStart"
# sources of a start after which a context is empty
EMPTIED = ("startup", "clear", "compact", agents.EMPTIED)
HOOKS = (PROMPT, START, FAILURE, EDIT, SUBAGENT)


@dataclass(frozen=True, slots=True)
class Event:
    """An event, in the names of Claude Code; "" is a field that it lacks."""

    hook_event_name: str
    session_id: str = ""
    prompt_id: str = ""
    cwd: str = "."
    source: str = "startup"  # of a session's start
    prompt: str = ""
    agent_id: str = ""  # of a subagent, whose context is its own
    agent_type: str = ""
    tool_use_id: str = ""
    command: str = ""  # that failed
    error: str = ""  # what it printed
    file: str = ""  # that is edited
    shows_lines: bool = True  # the agent shows its user a line
    has_tools: bool = False  # our MCP server is in the agent's settings
    program: str = "lessons"  # by which the agent's shell finds us
    pid: int = 0  # of the hook
    began: float = field(default_factory=time.time)  # when the hook did, in seconds since 1970

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Event:
        """Return the event that a hook sent; other keys are not read."""
        return cls(**{each.name: values[each.name] for each in fields(cls) if each.name in values})

    @property
    def is_emptied(self) -> bool:
        """Whether the agent lost what it was given: a session or subagent starts, or starts over."""
        return self.hook_event_name == START and self.source in EMPTIED

    @property
    def is_fork(self) -> bool:
        """Whether a subagent has the whole conversation of its session: it heard the lessons."""
        return self.agent_type == "fork"
