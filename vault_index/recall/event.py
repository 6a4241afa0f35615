"""An event of an agent, as its hook hands it on: `entrypoints.hook.client` cuts it to these fields."""

from __future__ import annotations

import time
from dataclasses import dataclass, field


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
    pid: int = 0  # of the hook
    began: float = field(default_factory=time.time)  # when the hook did, in seconds since 1970

    @property
    def is_fork(self) -> bool:
        """Whether a subagent has the whole conversation of its session: it heard the lessons."""
        return self.agent_type == "fork"
