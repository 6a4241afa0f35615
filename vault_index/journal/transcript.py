"""A transcript of an agent as a session: read on from where reading stopped, line by line.

The last turn of a transcript may still go on, so it is read again when the file grows; what comes before
it is read for good. The session is the same wherever earlier reads stopped: all that is remembered from
one turn to the next is in `ReadTo.state`, taken where a prompt finds the agent idle.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from vault_index.errors import VaultError
from vault_index.journal import observe
from vault_index.journal.record import SUMMARY, ReadTo, Session, short_id
from vault_index.transcripts import events, tools
from vault_index.transcripts.events import Event
from vault_index.transcripts.reading import Reading
from vault_index.transcripts.turns import Call, Turn, Turns

# A session as it is read: its turns become records, and what outlasts a turn is remembered.

MAX_SEARCHES = 12  # the last ones
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\Z")
_CREATED = re.compile(r"Task #(\w+) created")
_SUBAGENT = "agent-"
_FIRST = ("session", "folder", "branch", "version")  # of which the first counts


class Work:
    """Takes the events of a session. `state` and `before` are those of the place where it goes on."""

    def __init__(
        self,
        stem: str,
        redact: Callable[[str], str],
        state: Mapping[str, Any],
        before: Session | None,
    ) -> None:
        self._stem = stem  # of the transcript's name
        self._meta = {name: str(state.get(name, "")) for name in (*_FIRST, "began", "ended")}
        counted = ("prompts", "tool_calls", "errors")
        self._counts = {name: int(state.get(name, 0)) for name in counted}
        self.number = int(state.get("number", 0))  # of the last prompt
        todos = state.get("todos") or {}
        self._todos = {str(key): (str(text), str(status)) for key, (text, status) in todos.items()}
        self._searches = list(map(str, state.get("searches") or []))
        is_interrupted = state.get("interrupted") is True
        self._turns = Turns(redact, str(state.get("said", "")), is_interrupted=is_interrupted)
        self._records = [
            record
            for record in (before.records if before else ())
            if before and record.kind != SUMMARY and record.number < before.read.number
        ]

    def state(self) -> dict[str, Any]:
        """Return what another needs to go on from here, where a turn ends: JSON, redacted."""
        return {
            **self._meta,
            **self._counts,
            "number": self.number,
            "todos": {key: list(value) for key, value in self._todos.items()},
            "searches": list(self._searches),
            "said": self._turns.said,
            "interrupted": self._turns.is_interrupted,
        }

    def take(self, event: Event) -> None:
        """Add an event."""
        meta = self._meta
        for name in _FIRST:
            if not meta[name]:
                meta[name] = getattr(event, name)
        if at := observe.utc(event.at):
            meta["began"] = min(meta["began"] or at, at)
            meta["ended"] = max(meta["ended"], at)
        if not event.in_subagent:
            self._counts["tool_calls"] += event.kind == events.TOOL_CALL
            self._counts["errors"] += event.kind == events.TOOL_RESULT and event.is_error
        if turn := self._turns.take(event):
            self._finish(turn)

    def finish_turn(self) -> None:
        """End the turn: its records are made."""
        if turn := self._turns.end():
            self._finish(turn)

    def session(self) -> Session:
        """Return the session so far, with its summary."""
        session_id, parent = self._ids()
        records = list(self._records)
        said: dict[str, Any] = {**self._meta, **self._counts}
        del said["session"]
        short, ended = short_id(session_id), self._meta["ended"]
        made = observe.summary(records, self._todos, self._searches, short, ended)
        return Session(
            id=session_id,
            agent="",
            transcript="",
            parent=parent,
            records=(*records, made) if made else tuple(records),
            **said,
        )

    def _ids(self) -> tuple[str, str]:
        """Return the id of the session and that of its parent.

        The name of a transcript is its session's id; an export may have another name. A subagent's
        records have the id of the session that started it.
        """
        if self._stem.startswith(_SUBAGENT):
            return self._stem.removeprefix(_SUBAGENT), self._meta["session"]
        return (self._stem if _UUID.match(self._stem) else self._meta["session"] or self._stem), ""

    def _finish(self, turn: Turn) -> None:
        prompt = turn.prompt
        if prompt and events.is_internal(prompt.text):
            return
        for call in turn.calls:
            self._remember(call)
        short = short_id(self._ids()[0])
        if prompt and observe.is_recorded(turn):
            self.number += 1
            self._counts["prompts"] += prompt.kind in events.TYPED
            self._records.append(observe.prompt_record(turn, prompt, self.number, short))
        self._records += observe.observations(turn, self.number, short, self._meta["folder"])

    def _remember(self, call: Call) -> None:
        """Note todos and searches: the summary has those of the whole session."""
        if call.kind == tools.SEARCH and not call.in_subagent:
            if text := str(call.input.get("pattern") or call.input.get("query") or ""):
                others = [other for other in self._searches if other != text[:80]]
                self._searches = [*others, text[:80]][-MAX_SEARCHES:]
        elif call.kind == tools.TODO and call.is_done and not call.is_error:
            self._todo(call)

    def _todo(self, call: Call) -> None:
        if todos := call.input.get("todos"):
            self._todos = {str(place): todo for place, todo in enumerate(todos)}
        elif subject := call.input.get("subject"):
            created = _CREATED.search(call.text)
            number = call.input.get("taskId") or len(self._todos) + 1
            key = f"#{created[1] if created else number}"
            self._todos[key] = (str(subject), str(call.input.get("status") or "pending"))
        key = f"#{call.input.get('taskId', '')}"
        if key in self._todos and (status := str(call.input.get("status") or "")):
            self._todos[key] = (self._todos[key][0], status)


_CHUNK = 1 << 20  # bytes


def read(file: Path, agent: str, before: Session | None, redact: Callable[[str], str]) -> Session:
    """Read a transcript into a session, on from where `before` stopped.

    A file that shrank or whose beginning changed is read from the start. A session that this product
    started has no records. Raises VaultError if the file cannot be read.
    """
    try:
        with file.open("rb", buffering=_CHUNK) as opened:
            size = os.fstat(opened.fileno()).st_size
            digest = _digest(opened, before.read, size) if before else None
            if digest is None:
                before, digest = None, hashlib.sha256()
                opened.seek(0)
            stop = before.read if before else ReadTo()
            began, state = stop.bytes, stop.state
            unread = int(state.get("unread", 0))
            reading = Reading(file, agent, state.get("reader") or {}, unread, digest)
            work = Work(file.stem, redact, state.get("work") or {}, before)
            for event in reading.events(opened):
                # the last place where the next reading can go on
                if (resume := reading.resume) is not None and event.kind in events.OPENING:
                    work.finish_turn()
                    state = {
                        "reader": resume["reader"],
                        "work": work.state(),
                        "unread": resume["unread"],
                    }
                    stop = ReadTo(began + reading.bytes, _hash(digest), work.number + 1, 0, state)
                work.take(event)
    except OSError as error:
        raise VaultError(f"{file} cannot be read: {error.strerror}") from None
    work.finish_turn()
    return replace(
        work.session(),
        agent=agent,
        transcript=str(file),
        project=before.project if before else "",
        unread=reading.reader.unread,
        read=replace(stop, size=began + reading.bytes),
    )


def _digest(opened: BinaryIO, read_to: ReadTo, size: int) -> Any:
    """Return the hash of what was read for good, None if the file is not what it was."""
    if size < max(read_to.size, read_to.bytes):
        return None
    digest = hashlib.sha256()
    left = read_to.bytes
    while left and (chunk := opened.read(min(left, _CHUNK))):
        digest.update(chunk)
        left -= len(chunk)
    is_same = _hash(digest) == (read_to.hash or _hash(hashlib.sha256()))
    return digest if left == 0 and is_same else None


def _hash(digest: Any) -> str:
    return str(digest.hexdigest()[:16])
