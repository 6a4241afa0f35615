"""A transcript of an agent as a session: read on from where reading stopped, line by line.

The last turn of a transcript may still go on, so it is read again when the file grows; what comes before
it is read for good. The session is the same wherever earlier reads stopped: all that is remembered from
one turn to the next is in `ReadTo.state`, taken where a prompt finds the agent idle.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from vault_index.errors import VaultError
from vault_index.journal import claude_code, codex, events, records
from vault_index.journal.events import Event
from vault_index.journal.record import ReadTo, Session
from vault_index.journal.records import Unread
from vault_index.journal.work import Work

CLAUDE, CODEX = "claude", "codex"
AGENTS = (CLAUDE, CODEX)
_CHUNK = 1 << 20  # bytes


class Reader(Protocol):
    """Turns lines of a transcript into events."""

    @property
    def is_quiet(self) -> bool:
        """Whether another reader can go on here with `state` alone, if a prompt follows."""

    def state(self) -> dict[str, Any]:
        """Return what another reader needs to go on, as JSON."""

    def events(self, line: bytes, unread: Unread) -> Iterator[Event]:
        """Yield the events of a line."""

    def end(self) -> Iterator[Event]:
        """Yield what only the end of the transcript decides."""


def read(file: Path, agent: str, before: Session | None, redact: Callable[[str], str]) -> Session:
    """Read a transcript into a session, on from where `before` stopped.

    A file that shrank or whose beginning changed is read from the start. A session that this product
    started has no records. Raises VaultError if the file cannot be read.
    """
    try:
        with file.open("rb", buffering=_CHUNK) as opened:
            size = os.fstat(opened.fileno()).st_size
            digest = _digest(opened, before.read, size) if before else None
            if before is None or digest is None:
                before, digest = None, hashlib.sha256()
                opened.seek(0)
            reading = _Reading(file, agent, before, digest, redact)
            reading.run(opened)
    except OSError as error:
        raise VaultError(f"{file} cannot be read: {error.strerror}") from None
    return reading.session()


def _digest(opened: BinaryIO, read_to: ReadTo, size: int) -> Any:
    """Return the hash of what was read for good, None if the file is not what it was."""
    if size < max(read_to.size, read_to.bytes):
        return None
    digest = hashlib.sha256()
    left = read_to.bytes
    while left and (chunk := opened.read(min(left, _CHUNK))):
        digest.update(chunk)
        left -= len(chunk)
    return (
        digest if left == 0 and _hash(digest) == (read_to.hash or _hash(hashlib.sha256())) else None
    )


def _hash(digest: Any) -> str:
    return str(digest.hexdigest()[:16])


class _Reading:
    """One reading of a transcript: the reader, the work it describes, and the last place to go on."""

    def __init__(
        self,
        file: Path,
        agent: str,
        before: Session | None,
        digest: Any,
        redact: Callable[[str], str],
    ) -> None:
        self._file, self._agent, self._before = file, agent, before
        self._digest = digest
        read_to = before.read if before else ReadTo()
        state: Mapping[str, Any] = read_to.state
        self._reader = self._open(state.get("reader") or {})
        self._work = Work(file.stem, redact, state.get("work") or {}, before)
        self._unread = Unread(lines=int(state.get("unread", 0)))
        self._offset = read_to.bytes
        self._stop = read_to

    def _open(self, state: Mapping[str, Any]) -> Reader:
        if self._agent == CODEX:
            return codex.Reader(state)
        return claude_code.Reader(of_subagent=self._file.name.startswith("agent-"))

    def run(self, opened: BinaryIO) -> None:
        """Read to the end. A last line without its end counts if it is whole."""
        for line, is_line in records.lines(opened):
            if not is_line:
                self._unread.lines += line.endswith(b"\n")
            elif line.endswith(b"\n"):
                self._take(line)
            else:
                for event in self._reader.events(line, Unread()):
                    self._work.take(event)
            self._digest.update(line)
            self._offset += len(line)
        for event in self._reader.end():
            self._work.take(event)

    def _take(self, line: bytes) -> None:
        is_quiet, reader_state, unread = self._reader.is_quiet, None, self._unread.count()
        if is_quiet:
            reader_state = self._reader.state()
        for place, event in enumerate(self._reader.events(line, self._unread)):
            if place == 0 and is_quiet and event.kind in events.OPENING:
                self._work.finish_turn()
                state = {"reader": reader_state, "work": self._work.state(), "unread": unread}
                number = self._work.number + 1
                self._stop = ReadTo(self._offset, _hash(self._digest), number, 0, state)
            self._work.take(event)

    def session(self) -> Session:
        """Return the session as it is now."""
        self._work.finish_turn()
        return replace(
            self._work.session(),
            agent=self._agent,
            transcript=str(self._file),
            project=self._before.project if self._before else "",
            unread=self._unread.count(),
            read=replace(self._stop, size=self._offset),
        )
