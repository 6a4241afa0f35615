"""Capture a transcript in the journal: read on, leave out excluded files, write moments and records.

All of it is one transaction, so that a kill at any moment leaves each session as it was or as it is now.
The next capture goes on from what the session says.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sqlite3
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

from vault_index import state
from vault_index.check.redact import redact
from vault_index.errors import unreadable
from vault_index.features import JournalTable
from vault_index.hotpath import index_files, spool
from vault_index.journal import archive, observe, projects
from vault_index.journal.excluded import Exclude
from vault_index.journal.journal import Journal
from vault_index.journal.record import ReadTo, Session
from vault_index.transcripts import events
from vault_index.transcripts.events import TranscriptEvent
from vault_index.transcripts.moments import Moment, Moments
from vault_index.transcripts.reading import Reading

# why nothing of a transcript is kept
NOT_RECORDED, NO_WORK, FORGOTTEN = "not recorded", "no work", "forgotten"
OTHER_PROJECT, COPY, OURS = "other project", "a copy", "started by lessons"

WAIT_SECONDS = 60.0  # for others who write: nobody waits for this


@dataclass(frozen=True, slots=True)
class Captured:
    """The outcome for a transcript: its session as it is kept, or `why` nothing is.

    `new` counts the records that it did not have before.
    """

    transcript: Path
    session: Session | None = None
    new: int = 0
    why: str = ""


def capture(journal: Journal, file: Path, agent: str, *, force: bool = False) -> Captured:
    """Take in the part of a transcript that the journal has not.

    Without `force` only if the sessions of its folder are recorded. Raises VaultError if the transcript
    cannot be read, and WriteError.
    """
    if os.environ.get(spool.INTERNAL):
        return Captured(file, why=OURS)
    read = read_on(journal, file, agent)
    if not force and not projects.recorded(journal, read.session.folder):
        return Captured(file, why=NOT_RECORDED)
    return store(journal, read, Exclude(journal.config[JournalTable].exclude))


def read_on(journal: Journal, file: Path, agent: str) -> Read:
    """Return the part of a transcript that the journal does not have. Raises VaultError."""
    with state.reading(journal.home) as db:
        before = archive.known(db, file)
    return read(file, agent, before)


class _OnlyShown(Exception):
    """Raised to undo the writes."""


def store(journal: Journal, read: Read, exclude: Exclude, *, dry_run: bool = False) -> Captured:
    """Write the moments of a transcript, without those that another session has and forgotten ones.

    With `dry_run` nothing is written. Raises WriteError.
    """
    session = read.session
    moments = exclude.apply(read.moments, session.folder)
    captured = Captured(Path(session.transcript), why=FORGOTTEN)
    if not session.project:
        is_shown = dry_run or not moments
        name = projects.name_for(journal, session.folder) if is_shown else ""
        name = name or projects.project_of(journal.home, session.folder)
        session = replace(session, project=name)
    with suppress(_OnlyShown), state.writing(journal.home, WAIT_SECONDS) as db:
        if not any(archive.is_buried(db, id) for id in (session.id, session.parent) if id):
            captured = _store(db, session, moments, read.begin)
        if dry_run:
            raise _OnlyShown
    return captured


def _store(
    db: sqlite3.Connection, session: Session, kept: Sequence[Moment], begin: int
) -> Captured:
    file = Path(session.transcript)
    names = [session.short, session.transcript]  # another process may have written it meanwhile
    known = archive.sessions(db, "WHERE short = ? OR transcript = ?", names)
    before = archive.with_records(db, known[0]) if known else None
    if before and known[0] == session:  # nothing grew
        return Captured(file, before)
    short = before.short if before else archive.free_short(db, session.id)
    session = replace(session, short=short, written=before.written if before else 0)
    if before is None:
        archive.write(db, session)
    db.execute("DELETE FROM moment WHERE session = ? AND place >= ?", [session.short, begin])
    moments = archive.moments(db, session.short) if begin else []
    new = _new(db, session.short, kept)
    archive.add_moments(db, session.short, new)
    session = observe.seen(session, moments + new)
    if not session.records:
        db.execute("DELETE FROM session WHERE short = ?", [session.short])
        return Captured(file, why=COPY if kept else NO_WORK)
    if session != before:
        session = replace(session, written=time.time_ns())
        archive.write(db, session)
    old = {record.id for record in before.records} if before else set()
    return Captured(file, session, sum(record.id not in old for record in session.records))


def not_forgotten(
    journal: Journal, session: Session, moments: Sequence[Moment]
) -> tuple[Moment, ...]:
    """Return the moments of a session that nobody had the journal forget. Raises StateError."""
    with state.reading(journal.home) as db:
        if any(archive.is_buried(db, id) for id in (session.id, session.parent) if id):
            return ()
        buried = _buried(
            db, {archive.hash_of(each.uuid): each.uuid for each in moments if each.uuid}
        )
    return tuple(each for each in moments if each.uuid not in buried)


def _new(db: sqlite3.Connection, short: str, moments: Sequence[Moment]) -> list[Moment]:
    """Return the moments that are neither forgotten nor in another session."""
    uuids = {archive.hash_of(each.uuid): each.uuid for each in moments if each.uuid}
    query = (
        "SELECT uuid FROM moment WHERE uuid IN (SELECT value FROM json_each(?)) AND session != ?"
    )
    excluded = {uuid for (uuid,) in db.execute(query, [json.dumps([*uuids.values()]), short])}
    excluded |= _buried(db, uuids)
    return [each for each in moments if each.uuid not in excluded]


def _buried(db: sqlite3.Connection, uuids: Mapping[str, str]) -> set[str]:
    """Return the uuids, by their hashes, of forgotten moments."""
    buried = "SELECT hash FROM forgotten WHERE hash IN (SELECT value FROM json_each(?))"
    return {uuids[hash] for (hash,) in db.execute(buried, [json.dumps([*uuids])])}


# A transcript of an agent as a session and its moments: read on from where reading stopped.
#
# The last turn of a transcript may still go on, so it is read again when the file grows; what comes
# before it is read for good. The moments are the same wherever earlier reads stopped: all that is
# remembered from one turn to the next is in `ReadTo.state`, taken where a prompt finds the agent idle.
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


def read(file: Path, agent: str, before: Session | None = None, *, outputs: bool = False) -> Read:
    """Read a transcript, on from where `before` stopped, with `outputs` with the output of each call.

    A file that shrank or whose beginning changed is read from the start. A session that this product
    started has no moments. Raises VaultError if the file cannot be read.
    """
    try:
        with os.fdopen(index_files.open_plain(file), "rb", _CHUNK) as opened:
            size = os.fstat(opened.fileno()).st_size
            digest = _digest(opened, before.read, size) if before else None
            if before is None or digest is None:
                before, digest = Session("", agent, str(file)), hashlib.sha256()
                opened.seek(0)
            return _read(file, opened, before, digest, outputs)
    except OSError as error:
        raise unreadable(file, error) from None


def _read(file: Path, opened: BinaryIO, before: Session, digest: Any, outputs: bool) -> Read:
    stop = before.read
    began, state = stop.bytes, stop.state
    unread = int(state.get("unread", 0))
    reading = Reading(file, before.agent, state.get("reader") or {}, unread, digest)
    cut = Moments(before.folder, state.get("cut"), outputs=outputs)
    moments = list[Moment]()
    fields: dict[str, Any] = {name: getattr(before, name) for name in (*_FIRST, "began", "ended")}
    fields["session"] = before.parent or before.id
    for event in reading.events(opened):
        # the last place where the next reading can go on
        if (resume := reading.resume) is not None and event.kind in events.OPENING:
            moments += cut.end()
            state = {**resume, "cut": cut.state()}
            stop = ReadTo(began + reading.bytes, _hash(digest), cut.place, 0, state)
        moments += cut.take(event)
        _note(fields, event)
    moments += cut.end()
    id, parent = _ids(file.stem, fields.pop("session"))
    now = replace(
        before,
        **fields,
        id=id,
        parent=parent,
        transcript=str(file),
        unread=reading.reader.unread,
        read=replace(stop, size=began + reading.bytes),
    )
    return Read(replace(now, branch=redact(now.branch)), tuple(moments), before.read.place)


def _note(fields: dict[str, Any], event: TranscriptEvent) -> None:
    """Note an event's facts on its session: the first folder, the first and the last time."""
    for name in ("session", *_FIRST):
        if not fields[name]:
            fields[name] = getattr(event, name)
    if when := observe.utc(event.at):
        fields["began"] = min(fields["began"] or when, when)
        fields["ended"] = max(fields["ended"], when)


def _ids(stem: str, named: str) -> tuple[str, str]:
    """Return the ids of a session and its parent: a subagent's records have the parent's id."""
    if stem.startswith(_SUBAGENT):
        return stem.removeprefix(_SUBAGENT), named
    return (stem if _UUID.match(stem) else named or stem), ""


def _digest(opened: BinaryIO, read_to: ReadTo, size: int) -> Any:
    """Return the hash of the part already read for good; None if the file was rewritten."""
    if size < max(read_to.size, read_to.bytes):
        return None
    digest = hashlib.sha256()
    remaining = read_to.bytes
    while remaining and (chunk := opened.read(min(remaining, _CHUNK))):
        digest.update(chunk)
        remaining -= len(chunk)
    is_same = _hash(digest) == (read_to.hash or _hash(hashlib.sha256()))
    return digest if remaining == 0 and is_same else None


def _hash(digest: Any) -> str:
    return str(digest.hexdigest()[:16])
