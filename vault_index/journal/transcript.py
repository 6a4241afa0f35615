"""A transcript of an agent as a session and its moments: read on from where reading stopped.

The last turn of a transcript may still go on, so it is read again when the file grows; what comes before
it is read for good. The moments are the same wherever earlier reads stopped: all that is remembered from
one turn to the next is in `ReadTo.state`, taken where a prompt finds the agent idle.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

from vault_index.check.redact import redact
from vault_index.errors import VaultError
from vault_index.journal import observe
from vault_index.journal.record import ReadTo, Session
from vault_index.transcripts import events
from vault_index.transcripts.events import Event
from vault_index.transcripts.moments import Moment, Moments
from vault_index.transcripts.reading import Reading

_CHUNK = 1 << 20  # bytes
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\Z")
_SUBAGENT = "agent-"
_FIRST = ("folder", "branch", "version")  # of which the first counts


@dataclass(frozen=True, slots=True)
class Read:
    """A session, without records, and its moments from place `begin` on; those before it stay."""

    session: Session
    moments: tuple[Moment, ...] = ()
    begin: int = 0


def read(file: Path, agent: str, before: Session | None = None) -> Read:
    """Read a transcript, on from where `before` stopped.

    A file that shrank or whose beginning changed is read from the start. A session that this product
    started has no moments. Raises VaultError if the file cannot be read.
    """
    try:
        with file.open("rb", buffering=_CHUNK) as opened:
            size = os.fstat(opened.fileno()).st_size
            digest = _digest(opened, before.read, size) if before else None
            if before is None or digest is None:
                before, digest = Session("", agent, str(file)), hashlib.sha256()
                opened.seek(0)
            return _read(file, opened, before, digest)
    except OSError as error:
        raise VaultError(f"{file} cannot be read: {error.strerror}") from None


def _read(file: Path, opened: BinaryIO, before: Session, digest: Any) -> Read:
    stop = before.read
    began, state = stop.bytes, stop.state
    unread = int(state.get("unread", 0))
    reading = Reading(file, before.agent, state.get("reader") or {}, unread, digest)
    cut = Moments(before.folder, state.get("cut"))
    there = list[Moment]()
    known: dict[str, Any] = {name: getattr(before, name) for name in (*_FIRST, "began", "ended")}
    known["session"] = before.parent or before.id
    for event in reading.events(opened):
        # the last place where the next reading can go on
        if (resume := reading.resume) is not None and event.kind in events.OPENING:
            there += cut.end()
            state = {**resume, "cut": cut.state()}
            stop = ReadTo(began + reading.bytes, _hash(digest), cut.place, 0, state)
        there += cut.take(event)
        _note(known, event)
    there += cut.end()
    id, parent = _ids(file.stem, known.pop("session"))
    now = replace(
        before,
        **known,
        id=id,
        parent=parent,
        transcript=str(file),
        unread=reading.reader.unread,
        read=replace(stop, size=began + reading.bytes),
    )
    return Read(replace(now, branch=redact(now.branch)), tuple(there), before.read.place)


def _note(known: dict[str, Any], event: Event) -> None:
    """Note what an event says of its session: of a folder the first counts, of times the ends."""
    for name in ("session", *_FIRST):
        if not known[name]:
            known[name] = getattr(event, name)
    if at := observe.utc(event.at):
        known["began"] = min(known["began"] or at, at)
        known["ended"] = max(known["ended"], at)


def _ids(stem: str, named: str) -> tuple[str, str]:
    """Return the id of a session and that of its parent.

    The name of a transcript is its session's id; an export may have another name. A subagent's
    records have the id of the session that started it.
    """
    if stem.startswith(_SUBAGENT):
        return stem.removeprefix(_SUBAGENT), named
    return (stem if _UUID.match(stem) else named or stem), ""


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
