"""Take a transcript into the journal: read on, redact, leave out, write the session file.

One process writes at a time, and a file is replaced whole, so that a kill at any moment leaves each
session as it was or as it is now. The next taking goes on from what the session file says.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vault_index import files
from vault_index.hotpath import grown
from vault_index.journal import kept, places, projects, session_file, transcript
from vault_index.journal.journal import Journal
from vault_index.journal.kept import Head, Kept
from vault_index.journal.left_out import LeftOut
from vault_index.journal.lock import held, make_folder
from vault_index.journal.record import SUMMARY, Record, Session, short_id
from vault_index.journal.redact import redact

# why nothing of a transcript is kept
NOT_RECORDED, NO_WORK, FORGOTTEN = "not recorded", "no work", "forgotten"
OTHER_PROJECT, COPY, OURS = "other project", "a copy", "started by lessons"
_SHORT = 100  # characters: names of files and such; what is longer was redacted when it was read


@dataclass(frozen=True, slots=True)
class Taken:
    """The outcome for a transcript: its session file, or `why` there is none.

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


def take(journal: Journal, file: Path, agent: str, *, force: bool = False) -> Taken:
    """Take in what a transcript has that the journal has not.

    Without `force` only if the sessions of its folder are recorded. Raises VaultError if the transcript
    cannot be read, or its session file does not parse, and WriteError.
    """
    if os.environ.get(grown.INTERNAL):
        return Taken(file, why=OURS)
    with held(journal.folder):
        there = kept.look_for(journal.folder, file)
        head = head_for(there, file)
        session, before = read(file, agent, head.file if head else None)
        why = "" if force or projects.recorded(journal, session.folder) else NOT_RECORDED
        if why:
            return Taken(file, session.id, why=why)
        return keep(journal, session, before, there, LeftOut(journal.config.journal_left_out))


def head_for(there: Kept, file: Path) -> Head | None:
    """Return the session file of a transcript, also of one that was moved since."""
    if head := there.by_transcript.get(str(file)):
        return head
    stem = file.stem.removeprefix("agent-")
    for name in (stem, stem[-36:]):
        for head in there.by_session.get(name, ()):
            if not Path(head.transcript).exists():
                return head
    return None


def read(file: Path, agent: str, session_file: Path | None) -> tuple[Session, Session | None]:
    """Return a transcript's session as it is now, redacted, and as its file has it.

    Raises VaultError.
    """
    before = kept.read(session_file) if session_file else None
    session = transcript.read(file, agent, before, redact)
    old = {id(record) for record in before.records} if before else set()
    records = tuple(
        record if id(record) in old else _redacted(record) for record in session.records
    )
    state = _redacted_state(session.read.state)
    read_to = replace(session.read, state=state)
    return replace(session, branch=redact(session.branch), records=records, read=read_to), before


def keep(
    journal: Journal, session: Session, before: Session | None, there: Kept, out: LeftOut
) -> Taken:
    """Write the session file of what was read, while the lock is held. Raises WriteError, VaultError."""
    file = Path(session.transcript)
    stones = kept.tombstones(journal.folder)
    if (
        kept.stone_of_session(session.id) in stones
        or kept.stone_of_session(session.parent) in stones
    ):
        return Taken(file, session.id, why=FORGOTTEN)
    goes_on = before is not None and not _has_no_record_of(before, session)
    fresh = session if goes_on else _without_copies(journal, session, there, stones)
    if not any(record.kind != SUMMARY for record in fresh.records):
        why = COPY if any(record.kind != SUMMARY for record in session.records) else NO_WORK
        return Taken(file, session.id, why=why)
    project = before.project if before else projects.project_of(journal, session.folder)
    session = out.apply(replace(fresh, project=project))
    place = _place(journal, session, there)
    session = _with_name(session, place)
    data = session_file.dump(session)
    if before is None or session_file.dump(before) != data:
        _write(place, data)
    there.add(Head(place, session.id, session.transcript))
    if there.has_uuids:
        there.add_uuids(session)
    old = {record.id for record in before.records} if before else set()
    return Taken(
        file,
        session.id,
        place,
        project,
        len(session.records),
        session.prompts,
        sum(record.id not in old for record in session.records),
    )


def preview(journal: Journal, session: Session, before: Session | None, there: Kept) -> Taken:
    """Return what `keep` would return, without writing anything."""
    fresh = session
    if before is None:
        fresh = _without_copies(journal, session, there, kept.tombstones(journal.folder))
        there.add_uuids(fresh)
    stones = {kept.stone_of_session(session.id), kept.stone_of_session(session.parent)}
    if stones & kept.tombstones(journal.folder):
        return Taken(Path(session.transcript), session.id, why=FORGOTTEN)
    if not any(record.kind != SUMMARY for record in fresh.records):
        return Taken(Path(session.transcript), session.id, why=NO_WORK)
    old = {record.id for record in before.records} if before else set()
    return Taken(
        Path(session.transcript),
        session.id,
        None,
        projects.name_for(journal, session.folder),
        len(fresh.records),
        session.prompts,
        sum(record.id not in old for record in fresh.records),
    )


def _has_no_record_of(before: Session, session: Session) -> bool:
    """Whether a session was read from its start again, or has but one turn."""
    old = {record.id: record for record in before.records}
    return not any(
        old.get(record.id) == record for record in session.records if record.kind != SUMMARY
    )


def _without_copies(
    journal: Journal, session: Session, there: Kept, stones: frozenset[str]
) -> Session:
    """Return a session that is new without the records that it repeats, and without forgotten ones."""
    if not there.has_uuids:
        kept.load_uuids(there, places.session_files(journal.folder))
    records = tuple(
        record
        for record in session.records
        if not there.is_copy(record, session.transcript)
        and (not stones or kept.stone_of_record(record) not in stones)
    )
    return session if len(records) == len(session.records) else replace(session, records=records)


def _place(journal: Journal, session: Session, there: Kept) -> Path:
    """Return where a session's file is, or a free place for it."""
    if head := there.by_transcript.get(session.transcript):
        return head.file
    for head in there.by_session.get(session.id, ()):
        if not Path(head.transcript).exists():
            return head.file
    named = journal.folder / places.place_of(session)
    place, number = named, 1
    while os.path.lexists(place) or place.stem.partition("-")[2] in there.names:
        number += 1
        place = named.with_name(f"{named.stem}-{number}.md")
    return place


def _with_name(session: Session, place: Path) -> Session:
    """Return a session with ids of its own for its records, if another's begin with the same letters."""
    name, usual = place.stem.partition("-")[2], short_id(session.id)
    number = name.rpartition("-")[2]
    if not name.startswith(f"{Path(places.place_of(session)).stem.partition('-')[2]}-"):
        return session
    records = tuple(
        replace(record, id=f"{usual}-{number}-{record.id.rpartition('-')[2]}")
        for record in session.records
    )
    return replace(session, records=records)


def _write(place: Path, data: bytes) -> None:
    make_folder(place.parent)
    with files.writing(place):
        files.replace_file(place, data)


def _redacted(record: Record) -> Record:
    """Return a record without secrets in what the reader does not redact, such as names of files."""
    short = [text for text in record.texts() if len(text) <= _SHORT]
    if all(redact(text) == text for text in (*short, *(run.text for run in record.commands))):
        return record
    return record.map_texts(redact)


def _redacted_state(value: Any) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {key: _redacted_state(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_redacted_state(inner) for inner in value]
    return value
