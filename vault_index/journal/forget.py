"""Take sessions or records out of the journal for good: files, rows, vectors; and show that they are.

What is forgotten stays so, though the agent's transcript is still there: hashes are noted (see `kept`),
of each session, and of each record for the copies that an agent makes when a session is resumed. A
session of which records are taken out by their text keeps the others, and is never taken in again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from vault_index import files
from vault_index.embed import cache
from vault_index.errors import VaultError
from vault_index.journal import expiry, index, kept, places, refine, session_file, take
from vault_index.journal.journal import Journal
from vault_index.journal.lock import held
from vault_index.journal.record import ReadTo, Record, Session, short_id

_PIECE = 48  # characters of a text that are looked for in the bytes of files
_LEAST = 16  # shorter ones are in other texts, too
_MOST_PIECES = 2_000
_CHUNK = 8 * 1024 * 1024  # bytes


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What was taken out, and how it was proven: `left` are files that still have something of it."""

    sessions: int = 0  # whose file is gone
    records: int = 0
    files_searched: int = 0
    bytes_searched: int = 0
    left: tuple[str, ...] = ()

    def went(self, journal: Journal) -> str:
        """Return a line about the sessions that expired; "" if none did."""
        which = "1 session" if self.sessions == 1 else f"{self.sessions} sessions"
        days = journal.config.journal_retention_days
        told = expiry.told(journal.config.home, f"{which} older than {days} days")
        return told if self.sessions else ""

    @property
    def proof(self) -> str:
        """What the search of the raw bytes found, in words."""
        where = f"{self.bytes_searched:,} bytes of {self.files_searched} files"
        if self.left:
            return f"something of it is still in {', '.join(self.left)} ({where} searched)"
        return f"nothing of it is left in {where}"


def forget(
    journal: Journal, *, session: str = "", project: str = "", before: str = "", matching: str = ""
) -> Forgotten:
    """Take out a session, by its id or the beginning of it, with those that it started; a project;
    all sessions that ended before a date; or the records that have a text, in any case of its letters.

    Those that are named together narrow the choice. Raises VaultError if nothing is named, or a session
    file does not parse, and WriteError.
    """
    if not (session or project or before or matching):
        raise VaultError("nothing to forget is named", "name a session, project, date or text")
    if not journal.folder.is_dir():
        return Forgotten()
    with held(journal.folder):
        chosen = [
            (file, each)
            for file, each in _sessions(journal, project)
            if (not session or _is_named(each, session)) and (not before or each.ended < before)
        ]
        done = _take_out(journal, chosen, matching, for_good=True)
        if project and not (session or before or matching):
            with suppress(OSError):
                (journal.folder / project / places.PROJECT_FILE).unlink()
            files.remove_empty(journal.folder / project, journal.folder)
    return done


def expire(journal: Journal) -> Forgotten:
    """Take out the sessions that ended, and were written, more than `retention_days` ago.

    Their files stay for a week, see `expiry`. An old transcript that somebody imports is kept as long
    as a new one. Raises VaultError, WriteError.
    """
    home, days = journal.config.home, journal.config.journal_retention_days
    oldest = expiry.oldest(home, days) if journal.folder.is_dir() else None
    for place, _, _ in os.walk(home):
        files.remove_left_overs(Path(place))
    if oldest is None:
        return Forgotten()
    month = oldest.strftime("%Y-%m")
    old = [
        file
        for file in places.session_files(journal.folder)
        if file.parent.name <= month and file.lstat().st_mtime < oldest.timestamp()
    ]
    if not old:  # a session ends after it began, most often on that day
        return Forgotten()
    with held(journal.folder):
        chosen = [
            (file, each)
            for file, each in _sessions(journal, "", old)
            if each.ended < oldest.strftime("%Y-%m-%dT%H:%M:%S")
        ]
        return _take_out(journal, chosen, "", for_good=False)


def _sessions(
    journal: Journal, project: str, some: Iterable[Path] | None = None
) -> Iterator[tuple[Path, Session]]:
    if some is None:
        folders = [journal.folder, *expiry.put_away_in(journal.config.home, journal.folder.name)]
        some = [file for folder in folders for file in places.session_files(folder, project)]
    for file in some:
        yield file, kept.read(file)


def _is_named(session: Session, name: str) -> bool:
    ids = (session.id, session.parent)
    return any(each and (each == name or short_id(each) == name) for each in ids) or (
        len(name) >= 8 and session.id.startswith(name)
    )


def _take_out(
    journal: Journal, chosen: list[tuple[Path, Session]], matching: str, *, for_good: bool
) -> Forgotten:
    """Remove files or records, then rows and vectors, then look for what remains."""
    gone: list[tuple[Session, list[Record]]] = []
    sessions = 0
    for _, session in chosen:
        records = [record for record in session.records if not matching or _has(record, matching)]
        if records or not matching:
            gone.append((session, records))
    if not gone:
        return Forgotten()
    if for_good:
        kept.bury(journal.folder, filter(None, _stones(gone)))
    by_id = {(session.id, session.transcript): records for session, records in gone}
    for file, session in chosen:
        removed = by_id.get((session.id, session.transcript))
        if removed is None:
            continue
        rest = tuple(record for record in session.records if record not in removed)
        with files.writing(file):
            if matching and rest:
                left = replace(session, records=rest, read=ReadTo())
                files.replace_file(file, session_file.dump(left))
            else:
                if for_good:
                    file.unlink(missing_ok=True)
                else:
                    expiry.put_away(journal.config.home, file)
                files.remove_empty(file.parent, file.parent.parent)
                sessions += 1
    ids = {session.id for session, _ in gone}
    index.remove(journal, sorted(ids))
    refine.forget(journal, ids)
    texts = [matching] if matching else _pieces(gone)
    searched, size, found = _search(journal, texts, bool(matching))
    count = sum(len(records) for _, records in gone)
    return Forgotten(sessions, count, searched, size, tuple(found))


def _stones(gone: list[tuple[Session, list[Record]]]) -> Iterator[str]:
    for session, records in gone:
        yield kept.stone_of_session(session.id)
        yield from map(kept.stone_of_record, records)


def _has(record: Record, text: str) -> bool:
    return any(text.casefold() in each.casefold() for each in take.texts_of(record))


def _pieces(gone: list[tuple[Session, list[Record]]]) -> list[str]:
    """Return what to look for: the beginning of each text that is long enough, and the sessions' ids."""
    ids = [session.id for session, _ in gone]
    lines = (
        line.strip()[:_PIECE]
        for _, records in gone
        for record in records
        for text in take.texts_of(record)
        for line in text.split("\n")[:3]
    )
    return [*ids, *dict.fromkeys(line for line in lines if len(line) >= _LEAST)][:_MOST_PIECES]


def _search(journal: Journal, texts: list[str], is_asked_for: bool) -> tuple[int, int, list[str]]:
    """Return how many files and bytes were searched for texts, and the files that have one.

    A text that another session has, too, is that session's; not so one that was asked for.
    """
    needles = {form for text in texts for form in _forms(text)}
    if not is_asked_for:
        for file in places.session_files(journal.folder):
            data = files.read_file(file).lower()
            needles -= {needle for needle in needles if needle in data}
    size, count, found = 0, 0, []
    longest = max(map(len, needles), default=1)
    for file in _all_files(journal):
        count += 1
        with suppress(OSError), file.open("rb") as opened:
            rest = b""
            while chunk := opened.read(_CHUNK):
                size += len(chunk)
                data = (rest + chunk).lower()
                if any(needle in data for needle in needles):
                    found.append(str(file))
                    break
                rest = chunk[-longest:]
    return count, size, found


def _all_files(journal: Journal) -> Iterator[Path]:
    for file in sorted(journal.folder.rglob("*")):
        if file.is_file() and not file.is_symlink():
            yield file
    yield from sorted(journal.config.home.glob(f"{cache.FILE}*"))


def _forms(text: str) -> set[bytes]:
    """Return a text as files may have it: as it is, in JSON, in 16 bits a character; small letters."""
    lowered = text.lower()
    return {
        lowered.encode("utf-8", "replace"),
        json.dumps(lowered)[1:-1].encode(),
        lowered.encode("utf-16-le", "replace"),
    }
