"""Lessons for the prompt of a subagent: searched for before it starts, handed over when it has started.

Claude Code tells the prompt to the hook before the tool that starts a subagent, whose answer goes to the
caller. The subagent reads the answer of `SubagentStart`, which is not told the prompt. So the first
leaves a note, and the second takes the oldest note of its session and kind of agent. A note holds what
was found, and of the prompt only the hash.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vault_index.recall import sessions
from vault_index.store import injections, ownership

if TYPE_CHECKING:
    from vault_index.vault import Vault

ASKED, START = "PreToolUse", injections.SUBAGENT
_ENDING = ".subagent-"
NOTE_SECONDS = 60.0  # an agent that was refused never takes its note


def leave(vault: Vault, event: Mapping[str, Any], told: Mapping[str, Any]) -> None:
    """Leave a note of what the subagent should be told that an event is about to start."""
    left = json.dumps({"agent": str(event.get("agent_type") or ""), "told": told})
    ending = f"{_ENDING}{time.time_ns():020d}-{os.urandom(4).hex()}"
    sessions.note(vault, str(event.get("session_id") or ""), "", [left], ending)


def take(vault: Vault, event: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what waits for a subagent; only one process gets it."""
    for file, note in _notes(sessions.file_of(vault, str(event.get("session_id") or ""))):
        if note["agent"] != str(event.get("agent_type") or ""):
            continue
        try:
            file.unlink()
        except OSError:  # another one has it
            continue
        told: dict[str, Any] = note["told"]
        return told
    return None


def _notes(session_file: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield the notes of a session, oldest first, and remove those that nobody came for."""
    oldest = time.time_ns() - int(NOTE_SECONDS * 1e9)
    for file in sorted(session_file.parent.glob(f"{session_file.name}{_ENDING}*")):
        written = file.name.rpartition(_ENDING)[2].partition("-")[0]
        try:
            if not written.isdigit() or int(written) < oldest:
                file.unlink()
                continue
            note = json.loads(ownership.read_text(file))
        except (OSError, ValueError):  # taken meanwhile, or half written
            continue
        if isinstance(note, dict) and {"agent", "told"} <= {*note}:
            yield file, note
