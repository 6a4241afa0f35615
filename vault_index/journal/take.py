"""Take a transcript into the journal: read on, redact, leave out, write the session file.

One process writes at a time, and a file is replaced whole, so that a kill at any moment leaves each
session as it was or as it is now. The next taking goes on from what the session file says.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from vault_index import files
from vault_index.errors import VaultError, WriteError
from vault_index.files.private import make_folder
from vault_index.hotpath import grown, index_files, log, start
from vault_index.journal import index, places, projects, session_file, transcript
from vault_index.journal.journal import Journal, held
from vault_index.journal.record import SUMMARY, Record, Session, short_id
from vault_index.journal.redact import LeftOut, redact
from vault_index.text.quote import visible_line

# What is in the journal already, asked of its files: sessions by id and transcript, uuids,
# tombstones.
#
# What was forgotten is noted by hashes alone, in `forgotten`: `session HASH`, `record HASH`, of the
# id of
# a session and of the last uuid of a record, which stays away though its transcript is still there.

TOMBSTONES = "forgotten"
_HEAD = 64 * 1024  # bytes; the frontmatter's keys of before `read` are in the first few hundred
_KEY = re.compile(rb'^(session|transcript|project): ("?)(.*?)\2$', re.MULTILINE)
_UUIDS = re.compile(rb'"uuids": \[([^\]]*)\]')


@dataclass(frozen=True, slots=True)
class Head:
    """Which session a file is of, and from which transcript."""

    file: Path
    session: str
    transcript: str


@dataclass(slots=True)
class Kept:
    """The journal as it was when somebody looked: heads by session and transcript, uuids' hashes."""

    by_session: dict[str, list[Head]] = field(default_factory=dict)
    by_transcript: dict[str, Head] = field(default_factory=dict)
    uuids: dict[int, str] = field(default_factory=dict)  # -> the session that was taken first
    has_uuids: bool = False
    names: set[str] = field(default_factory=set)  # of the files, without the day

    def add(self, head: Head) -> None:
        """Note a session file."""
        heads = self.by_session.setdefault(head.session, [])
        heads[:] = [other for other in heads if other.file != head.file] + [head]
        self.by_transcript[head.transcript] = head
        self.names.add(head.file.stem.partition("-")[2])

    def add_uuids(self, session: Session) -> None:
        """Note the uuids of a session's records."""
        for record in session.records:
            for uuid in record.uuids:
                self.uuids.setdefault(hash(uuid), session.transcript)

    def is_copy(self, record: Record, transcript: str) -> bool:
        """Whether another transcript's records have all uuids of a record."""
        return bool(record.uuids) and all(
            self.uuids.get(hash(uuid), transcript) != transcript for uuid in record.uuids
        )


def look_at_sessions(folder: Path) -> Kept:
    """Return all that a journal has, without uuids."""
    kept = Kept()
    for file in places.session_files(folder):
        if head := head_of(file):
            kept.add(head)
    return kept


def look_for(folder: Path, transcript: Path) -> Kept:
    """Return what a journal has of one transcript: session files that its name leads to."""
    stem = transcript.stem.removeprefix("agent-")
    names = {short_id(stem), short_id(stem[-36:])}  # the id is the end of a rollout's name
    kept = Kept()
    for name in names:
        pattern = "".join(char if char.isalnum() else "?" for char in name)
        for file in sorted(folder.glob(f"[!.]*/????-??/??-{pattern}*.md")):
            if head := head_of(file):
                kept.add(head)
    return (
        kept
        if str(transcript) in kept.by_transcript or len(stem) >= 36
        else look_at_sessions(folder)
    )


def head_of(file: Path) -> Head | None:
    """Return the head of a session file; None if it has none or cannot be read."""
    try:
        with file.open("rb") as opened:
            return _head_in(opened.read(_HEAD), file)
    except OSError:
        return None


def _head_in(data: bytes, file: Path) -> Head | None:
    values = {
        match[1]: _text(match[2], match[3])
        for match in _KEY.finditer(data.partition(b"\n---\n")[0])
    }
    session = values.get(b"session", "")
    return Head(file, session, values.get(b"transcript", "")) if session else None


def read_session(file: Path) -> Session:
    """Read a session file. Raises VaultError, which names it and the line."""
    return session_file.parse(files.read_file(file), file)


def load_uuids(kept: Kept, session_files: Iterable[Path]) -> None:
    """Add the uuids of session files, in the order in which their sessions began."""
    for file in sorted(session_files, key=lambda file: (file.parent.name, file.name)):
        try:
            data = files.read_file(file)
        except VaultError:
            continue
        if head := _head_in(data[:_HEAD], file):
            for uuid in _uuids_in(data):
                kept.uuids.setdefault(hash(uuid), head.transcript)
    kept.has_uuids = True


def tombstones(folder: Path) -> frozenset[str]:
    """Return the lines of what was forgotten. Raises VaultError if the file cannot be read."""
    file = folder / TOMBSTONES
    try:
        text = file.read_text("utf-8")
    except FileNotFoundError:
        return frozenset()
    except (OSError, ValueError) as error:
        raise VaultError(f"{file} cannot be read: {error}", f"make {file} readable") from None
    return frozenset(line.strip() for line in text.splitlines())


def bury(folder: Path, stones: Iterable[str]) -> None:
    """Note what is forgotten, for good. Raises WriteError."""
    lines = sorted(tombstones(folder) | set(stones))
    with files.writing(folder / TOMBSTONES):
        files.replace_file(folder / TOMBSTONES, "".join(f"{line}\n" for line in lines).encode())


def stone_of_session(session: str) -> str:
    """Return the line that says that a session was forgotten."""
    return f"session {_hash(session)}"


def stone_of_record(record: Record) -> str:
    """Return the line that says that a record was forgotten; "" for one without uuids.

    By its last uuid: the first of an observation is that of its prompt.
    """
    return f"record {_hash(record.uuids[-1])}" if record.uuids else ""


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:24]


def _text(quote: bytes, value: bytes) -> str:
    text = value.decode("utf-8", "replace")
    return text.replace('\\"', '"').replace("\\\\", "\\") if quote else text


def _uuids_in(data: bytes) -> Iterator[str]:
    for some in _UUIDS.findall(data):
        for uuid in some.split(b", "):
            if len(uuid) > 2:
                yield uuid[1:-1].decode("utf-8", "replace")


# The transcripts that wait to be taken in: notes of hooks, and of watchers: see `hotpath.grown`.

_NAME_CHARS = 16  # of a note, a hash in hexadecimal; others are half-written
MAX_PATH_BYTES = 64 * 1024
COMPLAINT_SECONDS = 7 * 86_400
_STAMP = len("2026-03-31 12:00:00 ")


@dataclass(frozen=True, slots=True)
class Note:
    """A transcript that grew. `inode` is that of the note's file, another each time it is written."""

    name: str
    inode: int
    transcript: Path
    at: float = 0.0  # seconds since 1970


def note(journal: Journal, transcripts: Iterable[Path]) -> None:
    """Note that transcripts grew. Raises WriteError."""
    make_folder(journal.folder)
    with files.writing(journal.folder):
        for transcript in transcripts:
            grown.note(str(journal.folder), str(transcript))


def waiting(journal: Journal) -> list[Note]:
    """Return the transcripts that wait to be taken in, the oldest note first."""
    return _notes(journal, lambda name: len(name) == _NAME_CHARS)


def ended(journal: Journal) -> list[Note]:
    """Return the transcripts whose sessions ended, to be learned from, the oldest note first."""
    return _notes(journal, lambda name: name[_NAME_CHARS:] == grown.ENDED)


def _notes(journal: Journal, is_one: Callable[[str], bool]) -> list[Note]:
    try:
        spool = index_files.open_folder(str(journal.folder / grown.FOLDER))
    except OSError:
        return []
    notes: list[tuple[int, Note]] = []
    try:
        names = os.listdir(spool)  # noqa: PTH208  # of the folder that is open
        for name in names:
            if is_one(name):
                with contextlib.suppress(OSError):
                    notes.append(_read(spool, name))
    finally:
        os.close(spool)
    return [written for _, written in sorted(notes, key=lambda pair: pair[0])]


def take_lock(journal: Journal) -> int | None:
    """Take the lock of who takes them in; None if it is held, or nothing was ever noted.

    Raises WriteError.
    """
    try:
        spool = index_files.open_folder(str(journal.folder / grown.FOLDER))
    except OSError:
        return None
    try:
        return start.take_lock(spool)
    except OSError as error:
        raise WriteError(f"{journal.folder / grown.FOLDER}: {error.strerror}") from None
    finally:
        os.close(spool)


def remove(journal: Journal, written: Note) -> None:
    """Remove a note, unless the transcript was noted again since. Raises WriteError."""
    file = journal.folder / grown.FOLDER / written.name
    aside = file.with_name(f"{written.name}.taken")
    with files.writing(file), contextlib.suppress(FileNotFoundError):
        file.replace(aside)
        if aside.stat().st_ino == written.inode:
            aside.unlink()
        else:
            aside.replace(file)


def complain(journal: Journal, message: str) -> None:
    """Write why something could not be taken in where `complaints` finds it; a full disk loses it."""
    with contextlib.suppress(OSError):
        spool = grown.open_spool(str(journal.folder))
        try:
            stamp = time.strftime("%Y-%m-%d %H:%M:%S")
            line = f"{stamp} {visible_line(message)}\n"
            log.append(spool, start.TAKING_LOG, line.encode("utf-8", "replace"))
        finally:
            os.close(spool)


def complaints(journal: Journal) -> list[str]:
    """Return what could not be taken in during the last days, each reason once, the latest last."""
    oldest = time.strftime("%Y-%m-%d", time.localtime(time.time() - COMPLAINT_SECONDS))
    try:
        text = (journal.folder / grown.FOLDER / start.TAKING_LOG).read_text("utf-8", "replace")
    except OSError:
        return []
    recent = [line for line in text.splitlines() if line[:10] >= oldest and len(line) > _STAMP]
    return list({line[_STAMP:]: line for line in recent}.values())


def _read(spool: int, name: str) -> tuple[int, Note]:
    handle = index_files.open_in(spool, name, os.O_RDONLY)
    try:
        now = os.fstat(handle)
        transcript = Path(os.fsdecode(os.read(handle, MAX_PATH_BYTES)))
    finally:
        os.close(handle)
    return now.st_mtime_ns, Note(name, now.st_ino, transcript, now.st_mtime)


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
        there = look_for(journal.folder, file)
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
    before = read_session(session_file) if session_file else None
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
    stones = tombstones(journal.folder)
    if stone_of_session(session.id) in stones or stone_of_session(session.parent) in stones:
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
        fresh = _without_copies(journal, session, there, tombstones(journal.folder))
        there.add_uuids(fresh)
    stones = {stone_of_session(session.id), stone_of_session(session.parent)}
    if stones & tombstones(journal.folder):
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
        load_uuids(there, places.session_files(journal.folder))
    records = tuple(
        record
        for record in session.records
        if not there.is_copy(record, session.transcript)
        and (not stones or stone_of_record(record) not in stones)
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


# Take in the transcripts that wait, and bring the index up to date.
#
# One process at a time does it, under a lock that nobody waits for: whoever finds it held has noted
# its
# transcript before, and the holder looks once more after it has let go.


def catch_up(journal: Journal, say: Callable[[str], None], *, lock: int | None = None) -> int:
    """Take in what waits, and bring the index up to date; return how many transcripts were taken in.

    `lock` is the one that this process was started with. Nothing happens while another process
    holds it. What cannot be read is said and no longer waits; what cannot be written goes on waiting.
    Raises VaultError.
    """
    taken = 0
    while True:
        lock = take_lock(journal) if lock is None else lock
        if lock is None:
            return taken
        try:
            taken += _take_all(journal, say)
            if taken:
                index.sync(journal, wait=True)
        finally:
            os.close(lock)
        lock = None
        if not waiting(journal):  # noted while we held the lock
            return taken


def _take_all(journal: Journal, say: Callable[[str], None]) -> int:
    taken = 0
    while notes := waiting(journal):
        for written in notes:
            try:
                take(journal, written.transcript, places.agent_of(written.transcript))
                taken += 1
            except WriteError:
                raise
            except VaultError as error:
                say(f"error: {error.message}")
            except Exception as error:  # noqa: BLE001  # a bug of ours; others still get in
                say(f"error: {written.transcript}: {type(error).__name__}: {error}")
            remove(journal, written)
    return taken
