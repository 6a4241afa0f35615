"""Files in the index folder of all that a session received, and that waits for its subagents."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from vault_index.recall.event import Event
from vault_index.store import ownership
from vault_index.vault import Vault

SESSION_DAYS = 7  # days to remember which lessons a session received


# the endings of files: of what an agent was told about, and of the lessons whose lines it got
TOLD, LINES = ".told", ".lines"


def file_of(vault: Vault, session: str, agent: str = "", ending: str = "") -> Path:
    """Return the file of a session, or of a subagent of it: without an ending that of the lessons."""
    name, subagent = (
        "".join(char for char in id if char.isalnum() or char in "-_")[:80]
        for id in (session, agent)
    )
    name += f".agent-{subagent}" if subagent else ""
    return vault.index_dir / "sessions" / f"{name}{ending}"


def lines_of(vault: Vault, session: str, agent: str = "", ending: str = "") -> list[str]:
    """Return the lines of such a file: ids of lessons."""
    try:
        return ownership.read_text(file_of(vault, session, agent, ending)).splitlines()
    except (OSError, UnicodeDecodeError):
        return []


def note(vault: Vault, session: str, agent: str, lines: Iterable[str], ending: str = "") -> None:
    """Append lines to such a file, as a session gets a lesson once.

    A subagent has a context of its own, so it has files of its own.
    """
    if not session or not (text := "".join(f"{line}\n" for line in lines)):
        return
    file = file_of(vault, session, agent, ending)
    try:
        ownership.make_folder(file.parent)
        handle = ownership.open_file(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        with os.fdopen(handle, "a", encoding="utf-8") as writing:
            writing.write(text)
    except OSError:  # a read-only vault: a lesson may then come twice
        return


def given(vault: Vault, session: str, agent: str = "") -> dict[str, None]:
    """Return the ids of the lessons that a session or its subagent received, the latest last."""
    latest_first = reversed(lines_of(vault, session, agent))
    return dict.fromkeys(reversed(dict.fromkeys(latest_first)))


def inherit(vault: Vault, session: str, agent: str) -> None:
    """Note for a subagent that it has what its session received until now."""
    for ending in ("", LINES) if agent else ():
        note(vault, session, agent, lines_of(vault, session, ending=ending), ending)


def forget_given(vault: Vault, session: str) -> None:
    """Empty the record of what a session received: the agent has lost it."""
    for ending in ("", LINES) if session else ():
        file_of(vault, session, ending=ending).unlink(missing_ok=True)


def times_told(vault: Vault, event: Event, about: str) -> int:
    """Return how often the agent of an event was told something about a failure or a file."""
    told = lines_of(vault, event.session_id, ending=TOLD)
    return told.count(_line_of(event, about))


def note_told(vault: Vault, event: Event, about: str) -> None:
    """Note that the agent of an event was told something about a failure or a file."""
    note(vault, event.session_id, "", [_line_of(event, about)], TOLD)


def _line_of(event: Event, about: str) -> str:
    agent = "".join(char for char in event.agent_id or "main" if char.isalnum())[:80]
    return f"{agent} {about}"


def forget_old(vault: Vault) -> None:
    """Remove the files of sessions that received nothing for `SESSION_DAYS`."""
    folder = vault.index_dir / "sessions"
    oldest = time.time() - SESSION_DAYS * 86_400
    for file in list(folder.iterdir()) if ownership.is_folder(folder) else []:
        if not ownership.is_folder(file) and file.lstat().st_mtime < oldest:
            file.unlink(missing_ok=True)


# Answer an event once, however many hooks ask: a user's and a project's settings may both have ours.
#
# An agent starts the hooks of an event side by side and waits for them. So an equal event that was
# answered after this hook's process began is this event, unless the agent's own ids of its prompts say
# otherwise; a prompt that is typed again has a later process. A hook appends a line to a file of the
# session and reads the file: the event belongs to its first line. No hook waits for a lock, and nothing
# can happen between looking and writing.

ENDING = ".answered"
_IDENTIFYING = (
    *("hook_event_name", "source", "prompt_id", "prompt"),
    *("agent_id", "tool_use_id", "command", "error"),
)


def claim(session_file: Path, event: Event) -> bool:
    """Whether this process may answer an event of a session: no other has since its hook began.

    A hook that did not get the watcher's answer in time, and has its
    own, holds the claim that the watcher made for its `pid`. If nothing can be written the claim is
    granted: an answer may then come twice.
    """
    identity = "\0".join(getattr(event, key) for key in _IDENTIFYING)
    name = hashlib.sha256(identity.encode("utf-8", "replace")).hexdigest()[:16]
    began = 0.0 if event.prompt_id else event.began
    ours = str(event.pid or os.urandom(8).hex())
    file = session_file.with_name(session_file.name + ENDING)
    try:
        ownership.make_folder(file.parent)
        handle = ownership.open_file(file, os.O_RDWR | os.O_APPEND | os.O_CREAT)
        try:
            os.write(handle, f"{name} {time.time()!r} {ours}\n".encode())
            lines = os.pread(handle, os.fstat(handle).st_size, 0).decode("ascii", "replace")
        finally:
            os.close(handle)
    except OSError:
        return True
    for line in lines.splitlines():
        with suppress(ValueError):  # no line of ours
            other, at, theirs = line.split()
            if other == name and float(at) >= began:
                return theirs == ours
    return True


# Lessons for the prompt of a subagent: searched for before it starts, handed over when it has started.
#
# Claude Code tells the prompt to the hook before the tool that starts a subagent, whose answer goes to
# the caller. The subagent reads the answer of `SubagentStart`, which is not told the prompt. So the
# first leaves a note, and the second takes the oldest note of its session and kind of agent. A note
# holds what was found, and of the prompt only the hash.

ASKED = "PreToolUse"
NOTE_SECONDS = 60.0  # an agent that was refused never takes its note
_SUBAGENT = ".subagent-"


def leave_note(vault: Vault, event: Event, told: Mapping[str, Any]) -> None:
    """Leave a note of what the subagent should be told that an event is about to start."""
    left = json.dumps({"agent": event.agent_type, "told": told})
    ending = f"{_SUBAGENT}{time.time_ns():020d}-{os.urandom(4).hex()}"
    note(vault, event.session_id, "", [left], ending)


def take_note(vault: Vault, event: Event) -> dict[str, Any] | None:
    """Return what waits for a subagent; only one process gets it."""
    for file, note in _notes(file_of(vault, event.session_id)):
        if note["agent"] != event.agent_type:
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
    for file in sorted(session_file.parent.glob(f"{session_file.name}{_SUBAGENT}*")):
        written = file.name.rpartition(_SUBAGENT)[2].partition("-")[0]
        try:
            if not written.isdigit() or int(written) < oldest:
                file.unlink()
                continue
            note = json.loads(ownership.read_text(file))
        except (OSError, ValueError):  # taken meanwhile, or half written
            continue
        if isinstance(note, dict) and {"agent", "told"} <= {*note}:
            yield file, note
