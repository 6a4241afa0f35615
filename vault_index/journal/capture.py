"""Capture a transcript in the journal: read on, leave out what is excluded, write moments and records.

All of it is one transaction, so that a kill at any moment leaves each session as it was or as it is now.
The next capture goes on from what the session says.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from vault_index import state
from vault_index.errors import VaultError, WriteError
from vault_index.features import JournalTable
from vault_index.hotpath import spool
from vault_index.journal import archive, backlog, index, observe, projects, transcript
from vault_index.journal.exclude import Exclude
from vault_index.journal.journal import Journal
from vault_index.journal.record import Session
from vault_index.journal.transcript import Read
from vault_index.transcripts import reading
from vault_index.transcripts.moments import Moment

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
    """Take in what a transcript has that the journal has not.

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
    """Return what a transcript has beside what the journal has of it. Raises VaultError."""
    with state.reading(journal.home) as db:
        before = archive.known(db, file)
    return transcript.read(file, agent, before)


class _OnlyShown(Exception):
    """Raised to undo what was written."""


def store(journal: Journal, read: Read, exclude: Exclude, *, dry_run: bool = False) -> Captured:
    """Write what was read, without copies of moments that another session has and forgotten ones.

    With `dry_run` nothing is written. Raises WriteError.
    """
    session = read.session
    kept = exclude.apply(read.moments, session.folder)
    done = Captured(Path(session.transcript), why=FORGOTTEN)
    if not session.project:
        is_shown = dry_run or not kept
        name = projects.name_for(journal, session.folder) if is_shown else ""
        name = name or projects.project_of(journal.home, session.folder)
        session = replace(session, project=name)
    with suppress(_OnlyShown), state.writing(journal.home, WAIT_SECONDS) as db:
        if not any(archive.is_buried(db, id) for id in (session.id, session.parent) if id):
            done = _store(db, session, kept, read.begin)
        if dry_run:
            raise _OnlyShown
    return done


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
    there = archive.moments(db, session.short) if begin else []
    new = _new(db, session.short, kept)
    archive.add_moments(db, session.short, new)
    session = observe.seen(session, there + new)
    if not session.records:
        db.execute("DELETE FROM session WHERE short = ?", [session.short])
        return Captured(file, why=COPY if kept else NO_WORK)
    if session != before:
        session = replace(session, written=time.time_ns())
        archive.write(db, session)
    old = {record.id for record in before.records} if before else set()
    return Captured(file, session, sum(record.id not in old for record in session.records))


def _new(db: sqlite3.Connection, short: str, kept: Sequence[Moment]) -> list[Moment]:
    """Return the moments that are neither forgotten nor in another session."""
    uuids = {archive.hash_of(each.uuid): each.uuid for each in kept if each.uuid}
    known = (
        "SELECT uuid FROM moment WHERE uuid IN (SELECT value FROM json_each(?)) AND session != ?"
    )
    gone = {uuid for (uuid,) in db.execute(known, [json.dumps([*uuids.values()]), short])}
    buried = "SELECT hash FROM forgotten WHERE hash IN (SELECT value FROM json_each(?))"
    gone |= {uuids[hash] for (hash,) in db.execute(buried, [json.dumps([*uuids])])}
    return [each for each in kept if each.uuid not in gone]


# Capture the transcripts that wait, and bring the index up to date.
#
# One process at a time does it, under a lock that nobody waits for: a process that finds it held has
# noted its transcript before, and the holder looks once more after it has let go.


def catch_up(journal: Journal, say: Callable[[str], None], *, lock: int | None = None) -> int:
    """Capture what waits, and bring the index up to date; return how many transcripts were captured.

    `lock` is the one that this process was started with. Nothing happens while another process
    holds it. An unreadable transcript is said and no longer waits; one that cannot be written waits on.
    Raises VaultError.
    """
    captured = 0
    lock = backlog.lock(journal) if lock is None else lock
    while lock is not None:
        try:
            captured += _capture_all(journal, say)
            if captured:
                index.sync(journal, wait=True)
        finally:
            os.close(lock)
        # what was noted while we held the lock
        lock = backlog.lock(journal) if backlog.waiting(journal) else None
    return captured


def _capture_all(journal: Journal, say: Callable[[str], None]) -> int:
    captured = 0
    while notes := backlog.waiting(journal):
        for note in notes:
            try:
                capture(journal, note.transcript, reading.agent_of(note.transcript))
                captured += 1
            except WriteError:
                raise
            except VaultError as error:
                say(f"error: {error.message}")
            except Exception as error:  # noqa: BLE001  # a bug of ours; others still get in
                say(f"error: {note.transcript}: {type(error).__name__}: {error}")
            backlog.remove(journal, note)
    return captured
