"""Capture a transcript in the journal: read on, redact, exclude, write the session file.

One process writes at a time, and a file is replaced whole, so that a kill at any moment leaves each
session as it was or as it is now. The next capture goes on from what the session file says.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from vault_index import files
from vault_index.check.redact import redact
from vault_index.errors import VaultError, WriteError
from vault_index.features import JournalTable
from vault_index.files.private import make_folder
from vault_index.hotpath import spool
from vault_index.journal import archive, backlog, index, projects, session_file, transcript
from vault_index.journal.archive import Catalog, Head
from vault_index.journal.exclude import Exclude
from vault_index.journal.journal import Journal, held
from vault_index.journal.record import Record, Session, short_id
from vault_index.transcripts import reading
from vault_index.transcripts.events import map_texts

# why nothing of a transcript is kept
NOT_RECORDED, NO_WORK, FORGOTTEN = "not recorded", "no work", "forgotten"
OTHER_PROJECT, COPY, OURS = "other project", "a copy", "started by lessons"
_SHORT = 100  # characters: names of files and such; what is longer was redacted when it was read


@dataclass(frozen=True, slots=True)
class Captured:
    """The outcome for a transcript: its session file, or `why` it has no file.

    `records` are those in the file, `new` those that it did not have before.
    """

    transcript: Path
    session: str = ""
    file: Path | None = None
    project: str = ""
    records: int = 0
    prompts: int = 0
    new: int = 0
    why: str = ""


def capture(journal: Journal, file: Path, agent: str, *, force: bool = False) -> Captured:
    """Take in what a transcript has that the journal has not.

    Without `force` only if the sessions of its folder are recorded. Raises VaultError if the transcript
    cannot be read, or its session file does not parse, and WriteError.
    """
    if os.environ.get(spool.INTERNAL):
        return Captured(file, why=OURS)
    with held(journal.folder):
        catalog = archive.catalog(journal.folder, file)
        session, before = read(file, agent, catalog.head_for(file))
        if not force and not projects.recorded(journal, session.folder):
            return Captured(file, session.id, why=NOT_RECORDED)
        return store(
            journal, session, before, catalog, Exclude(journal.config[JournalTable].exclude)
        )


def read(file: Path, agent: str, head: Head | None) -> tuple[Session, Session | None]:
    """Return a transcript's session as it is now, redacted, and as the file of `head` has it.

    Raises VaultError.
    """
    before = archive.read(head.file) if head else None
    session = transcript.read(file, agent, before, redact)
    old = {id(record) for record in before.records} if before else set()
    records = tuple(
        record if id(record) in old else _redacted(record) for record in session.records
    )
    read_to = replace(session.read, state=map_texts(session.read.state, redact))
    return replace(session, branch=redact(session.branch), records=records, read=read_to), before


def store(
    journal: Journal,
    session: Session,
    before: Session | None,
    catalog: Catalog,
    exclude: Exclude,
    *,
    dry_run: bool = False,
) -> Captured:
    """Write the session file of what was read, while the lock is held. Raises WriteError, VaultError.

    With `dry_run` nothing is written.
    """
    file = Path(session.transcript)
    stones = archive.tombstones(journal.folder)
    if stones & {archive.stone_of_session(id) for id in (session.id, session.parent)}:
        return Captured(file, session.id, why=FORGOTTEN)
    goes_on = before is not None and _goes_on(before, session)
    fresh = session if goes_on else _without_copies(journal, session, catalog, stones)
    if not fresh.work:
        return Captured(file, session.id, why=COPY if session.work else NO_WORK)
    if dry_run:
        place, project = None, projects.name_for(journal, session.folder)
    else:
        project = before.project if before else projects.project_of(journal.folder, session.folder)
        fresh = exclude.apply(replace(fresh, project=project))
        place = _place(journal, fresh, catalog)
        fresh = _with_name(fresh, place)
        data = session_file.dump(fresh)
        if before is None or session_file.dump(before) != data:
            make_folder(place.parent)
            files.replace_file(place, data)
        catalog.add(Head(place, session.id, session.transcript))
    if catalog.has_uuids:
        catalog.add_uuids(fresh)
    old = {record.id for record in before.records} if before else set()
    new = sum(record.id not in old for record in fresh.records)
    return Captured(file, session.id, place, project, len(fresh.records), fresh.prompts, new)


def _goes_on(before: Session, session: Session) -> bool:
    """Whether a session has a record of before: it was not read from its start again."""
    old = {record.id: record for record in before.records}
    return any(old.get(record.id) == record for record in session.work)


def _without_copies(
    journal: Journal, session: Session, catalog: Catalog, stones: frozenset[str]
) -> Session:
    """Return a session that is new without the records that it repeats, and without forgotten ones."""
    if not catalog.has_uuids:
        catalog.load_uuids(journal.folder)
    records = tuple(
        record
        for record in session.records
        if not catalog.is_copy(record, session.transcript)
        and (not stones or archive.stone_of_record(record) not in stones)
    )
    return session if len(records) == len(session.records) else replace(session, records=records)


def _place(journal: Journal, session: Session, catalog: Catalog) -> Path:
    """Return where a session's file is, or a free place for it."""
    if head := catalog.by_transcript.get(session.transcript) or catalog.moved_from(session.id):
        return head.file
    named = journal.folder / archive.path_of(session)
    place, number = named, 1
    while os.path.lexists(place) or archive.name_in(place) in catalog.names:
        number += 1
        place = named.with_name(f"{named.stem}-{number}.md")
    return place


def _with_name(session: Session, place: Path) -> Session:
    """Return a session with ids of its own for its records, if another's begin with the same letters."""
    name = archive.name_in(place)
    if not name.startswith(f"{archive.name_in(Path(archive.path_of(session)))}-"):
        return session
    begin = f"{short_id(session.id)}-{name.rpartition('-')[2]}"
    records = tuple(
        replace(record, id=f"{begin}-{record.id.rpartition('-')[2]}") for record in session.records
    )
    return replace(session, records=records)


def _redacted(record: Record) -> Record:
    """Return a record without secrets in what the reader does not redact, such as names of files."""
    short = [text for text in record.texts() if len(text) <= _SHORT]
    if all(redact(text) == text for text in (*short, *(run.text for run in record.commands))):
        return record
    return record.map_texts(redact)


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
