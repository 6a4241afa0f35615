"""A transcript of an agent as a session: read on from where reading stopped, line by line.

The last turn of a transcript may still go on, so it is read again when the file grows; what comes before
it is read for good. The session is the same wherever earlier reads stopped: all that is remembered from
one turn to the next is in `ReadTo.state`, taken where a prompt finds the agent idle.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from vault_index.errors import VaultError
from vault_index.journal.record import ReadTo, Session
from vault_index.journal.work import Work
from vault_index.transcripts import events
from vault_index.transcripts.reading import Reading

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
        unread = int(state.get("unread", 0))
        self._reading = Reading(file, agent, state.get("reader") or {}, unread, digest)
        self._work = Work(file.stem, redact, state.get("work") or {}, before)
        self._began = read_to.bytes
        self._stop = read_to

    def run(self, opened: BinaryIO) -> None:
        """Read to the end."""
        for event in self._reading.events(opened):
            if self._reading.resume is not None and event.kind in events.OPENING:
                self._work.finish_turn()
                reader, unread = self._reading.resume["reader"], self._reading.resume["unread"]
                state = {"reader": reader, "work": self._work.state(), "unread": unread}
                number = self._work.number + 1
                self._stop = ReadTo(self._offset, _hash(self._digest), number, 0, state)
            self._work.take(event)

    @property
    def _offset(self) -> int:
        return self._began + self._reading.bytes

    def session(self) -> Session:
        """Return the session as it is now."""
        self._work.finish_turn()
        return replace(
            self._work.session(),
            agent=self._agent,
            transcript=str(self._file),
            project=self._before.project if self._before else "",
            unread=self._reading.unread.count(),
            read=replace(self._stop, size=self._offset),
        )
