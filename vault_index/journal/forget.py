"""Take sessions or records out of the journal for good: files, rows, vectors; and show that they are.

Forgotten sessions stay so, though the agent's transcript is still there: hashes are noted (see
`archive`) of each session, and of each record for the copies that an agent makes when a session is
resumed. A session that loses records by their text keeps the others, and is never captured again.

Proposals and conversations that were made of the records go with them. A note in `forgetting.json` says
what is to go before anything goes. After a kill or on a full disk the next command of the journal, or
the watcher, finishes it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from vault_index import files
from vault_index.embed import cache
from vault_index.errors import VaultError
from vault_index.features import JournalTable
from vault_index.hotpath import index_files
from vault_index.journal import archive, index, projects, session_file
from vault_index.journal.journal import INDEX, PENDING, Journal, held
from vault_index.journal.record import ReadTo, Record, Session, private_id, short_id
from vault_index.store import moments

MADE_OF_SESSIONS = ("proposals", "ask")  # folders of the user: drafts, rejected ones, conversations
MODELS = "models"

_PIECE = 48  # characters of a text that are looked for in the bytes of files
_LEAST = 16  # shorter ones are in other texts, too
_MAX_PIECES = 2_000
_CHUNK = 8 * 1024 * 1024  # bytes


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The number of things taken out, and the proof.

    `left` are files that still have something of it, and `lessons` those of lessons that a person
    accepted, which stay.
    """

    sessions: int = 0  # whose file is gone
    records: int = 0
    beside: int = 0  # proposals and conversations that were made of it
    files_searched: int = 0
    bytes_searched: int = 0
    left: tuple[str, ...] = ()
    lessons: tuple[str, ...] = ()

    def went(self, journal: Journal) -> str:
        """Return a line about the sessions that expired; "" if none did."""
        days = journal.config[JournalTable].retention_days
        which = moments.count_of(self.sessions, "session")
        return f"{which} older than {days} days went" if self.sessions else ""

    @property
    def proof(self) -> str:
        """The result of the search of the raw bytes, in words."""
        where = f"{self.bytes_searched:,} bytes of {self.files_searched} files"
        stays = f"; accepted lessons keep it: {', '.join(self.lessons)}" if self.lessons else ""
        if self.left:
            return f"something of it is still in {', '.join(self.left)} ({where} searched){stays}"
        return f"nothing of it is left in {where}{stays}"


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A wish to forget sessions by their ids or, with `matching`, only their records with that text."""

    sessions: tuple[str, ...] = ()
    matching: str = ""
    texts: tuple[str, ...] = ()  # what to look for in the bytes of files
    expired: bool = False  # what was made of the sessions stays, and they may be imported again


def forget(
    journal: Journal, *, session: str = "", project: str = "", before: str = "", matching: str = ""
) -> Forgotten:
    """Take out a session, by its id or the beginning of it, with those that it started; a project;
    all sessions that ended before a date; or the records that have a text, in any case of its letters.

    Those that are named together narrow the choice. The bytes are searched even if nothing matches.

    Raises VaultError if nothing is named, or a session file does not parse, and WriteError.
    """
    if not (session or project or before or matching):
        raise VaultError("nothing to forget is named", "name a session, project, date or text")
    if not journal.folder.is_dir():
        return Forgotten()
    with held(journal.folder):
        finish(journal)
        chosen = [
            (file, each)
            for file in archive.all_files(journal.folder, project)
            if _is_named(each := archive.read(file), session)
            and (not before or each.ended < before)
        ]
        done = _take_out(journal, chosen, matching, for_good=True)
        if not done.records and not done.sessions and (matching or session):
            ids = (session,) if len(session) >= _LEAST and not matching else ()
            texts = (matching,) if matching else ids
            done = _finish(journal, _Wanted(ids, matching, texts)) if texts else done
        if project and not (session or before or matching):
            with suppress(OSError):
                (journal.folder / project / projects.FILE).unlink()
            files.remove_empty(journal.folder / project, journal.folder)
    return done


def is_pending(journal: Journal) -> bool:
    """Whether a kill or a full disk left something to be forgotten."""
    return os.path.lexists(journal.folder / PENDING)


def finish(journal: Journal) -> Forgotten | None:
    """Take out what an earlier call wrote down and did not finish; None if there is nothing.

    Raises VaultError, WriteError.
    """
    if not is_pending(journal):
        return None
    with held(journal.folder):
        data = files.read_if_any(journal.folder / PENDING)
        try:
            values = json.loads(data or b"")
            names = ("sessions", "texts")
            wanted = _Wanted(**{**values, **{name: tuple(values[name]) for name in names}})
        except (ValueError, TypeError, KeyError):  # of a write that a kill cut short
            wanted = _Wanted()
        return _finish(journal, wanted)


def expire(journal: Journal) -> Forgotten:
    """Take out the sessions that ended, and were written, more than `retention_days` ago.

    An old transcript that somebody imports is kept as long as a new one. Raises VaultError, WriteError.
    """
    for place, _, _ in os.walk(journal.config.home):
        files.remove_left_overs(Path(place))
    oldest = moments.days_ago(journal.config[JournalTable].retention_days)
    if oldest is None or not journal.folder.is_dir():
        return Forgotten()
    month = oldest.strftime("%Y-%m")
    old = [
        file
        for file in archive.all_files(journal.folder)
        if file.parent.name <= month and file.lstat().st_mtime < oldest.timestamp()
    ]
    if not old:  # a session ends after it began, most often on that day
        return Forgotten()
    with held(journal.folder):
        chosen = [
            (file, each)
            for file in old
            if (each := archive.read(file)).ended < oldest.strftime("%Y-%m-%dT%H:%M:%S")
        ]
        return _take_out(journal, chosen, "", for_good=False)


def _is_named(session: Session, name: str) -> bool:
    """Whether a session, or the one that started it, has a name; each has none at all."""
    names = {form for id in (session.id, session.parent) if id for form in (id, short_id(id))}
    return not name or name in names or (len(name) >= 8 and session.id.startswith(name))


def _take_out(
    journal: Journal, chosen: list[tuple[Path, Session]], matching: str, *, for_good: bool
) -> Forgotten:
    """Write down which sessions or records go, then remove them and all that was made of them."""
    gone: list[tuple[Session, list[Record]]] = []
    for _, session in chosen:
        records = [record for record in session.records if not matching or _has(record, matching)]
        if records or not matching:
            gone.append((session, records))
    if not gone:
        return Forgotten()
    if for_good:
        stones = [archive.stone_of_session(session.id) for session, _ in gone]
        stones += [archive.stone_of_record(record) for _, records in gone for record in records]
        archive.bury(journal.folder, filter(None, stones))
    ids = tuple(sorted({session.id for session, _ in gone}))
    texts = (matching,) if matching else tuple(_pieces(gone))
    wanted = _Wanted(ids, matching, texts, expired=not for_good)
    files.replace_file(journal.folder / PENDING, json.dumps(asdict(wanted)).encode())
    files_of = [file for file, session in chosen if session.id in ids]
    done = _finish(journal, wanted, files_of)
    return replace(done, records=sum(len(records) for _, records in gone))


def _finish(journal: Journal, wanted: _Wanted, files_of: Iterable[Path] | None = None) -> Forgotten:
    """Remove what is wanted, in an order in which a kill at any moment loses nothing of the note.

    `files_of` are the files of the sessions; None to look for them. Without sessions the rest is
    looked at: an index that has a text is built again.
    """
    every = files_of
    if every is None:
        every = archive.all_files(journal.folder)
    removed = sum(_remove_from(file, wanted) for file in every if wanted.sessions)
    beside = 0 if wanted.expired else _remove_beside(journal, wanted)
    needles, ids = _forms(wanted.texts), _forms(wanted.sessions)
    # a text that another session has, too, is that session's, unless it was asked for
    for file in () if wanted.matching else archive.all_files(journal.folder):
        data = files.read_file(file).lower()
        needles = {needle for needle in needles if needle not in data}
    vectors = sorted(journal.config.home.glob(f"{cache.FILE}*"))
    indexes = ((file, needles) for file in (*_files_below(journal.folder, (INDEX,)), *vectors))
    if wanted.sessions or is_pending(journal) or _search(indexes)[2]:
        index.remove(journal, wanted.sessions)
    searched, size, found = _search(
        (file, needles if journal.folder in file.parents else needles - ids)  # hooks keep ids
        for file in _all_files(journal)
    )
    lessons = [file for file in found if journal.config.home not in Path(file).parents]
    (journal.folder / PENDING).unlink(missing_ok=True)
    left = tuple(file for file in found if file not in lessons and Path(file).name != PENDING)
    return Forgotten(removed, 0, beside, searched, size, left, tuple(lessons))


def _remove_from(file: Path, wanted: _Wanted) -> bool:
    """Remove a session's file if it is wanted, or its wanted records. Whether the file is gone."""
    head = archive.head_of(file)
    if head is None or head.session not in wanted.sessions:
        return False
    rest: tuple[Record, ...] = ()
    if wanted.matching:
        session = archive.read(file)
        rest = tuple(each for each in session.records if not _has(each, wanted.matching))
        if len(rest) == len(session.records):
            return False
    with files.writing(file):
        if rest:
            left = replace(session, records=rest, read=ReadTo())
            files.replace_file(file, session_file.dump(left))
            return False
        file.unlink(missing_ok=True)
        files.remove_empty(file.parent, file.parent.parent)
    return True


def _remove_beside(journal: Journal, wanted: _Wanted) -> int:
    """Remove proposals and conversations that were made of what goes; return how many."""
    needles = _forms(wanted.texts)
    if not wanted.matching:  # a session's id says nothing, and is where hooks are recorded
        needles -= _forms(wanted.sessions)
        needles |= {private_id(session).encode() for session in wanted.sessions}
    removed = 0
    home = journal.config.home
    for file in _files_below(home, MADE_OF_SESSIONS):
        data = files.read_if_any(file) or b""
        if not _has_any(data, needles):
            continue
        removed += 1
        with files.writing(file):
            if file.suffix == ".jsonl":  # what was rejected, a proposal a line
                lines = data.splitlines(keepends=True)
                rest = b"".join(line for line in lines if not _has_any(line, needles))
                files.replace_file(file, rest)
            else:
                file.unlink(missing_ok=True)
    return removed


def _has(record: Record, text: str) -> bool:
    return any(text.casefold() in each.casefold() for each in record.texts())


def _pieces(gone: list[tuple[Session, list[Record]]]) -> list[str]:
    """Return what to look for: the beginning of each text that is long enough, and the sessions' ids."""
    ids = [session.id for session, _ in gone]
    lines = (
        line.strip()[:_PIECE]
        for _, records in gone
        for record in records
        for text in record.texts()
        for line in text.split("\n")[:3]
    )
    return [*ids, *dict.fromkeys(line for line in lines if len(line) >= _LEAST)][:_MAX_PIECES]


def _search(some: Iterable[tuple[Path, set[bytes]]]) -> tuple[int, int, list[str]]:
    """Search files, each for its needles.

    Return how many files and bytes were searched, and the files that have one of them.
    """
    size, count, found = 0, 0, []
    for file, needles in some:
        longest = max(map(len, needles), default=1)
        count += 1
        with suppress(OSError), file.open("rb") as opened:
            rest = b""
            while chunk := opened.read(_CHUNK):
                size += len(chunk)
                if _has_any(rest + chunk, needles):
                    found.append(str(file))
                    break
                rest = chunk[-longest:]
    return count, size, found


def _all_files(journal: Journal) -> Iterator[Path]:
    """Yield the user's files, but those of models, and the vaults that sessions were about."""
    home = journal.config.home
    names = sorted(each.name for each in home.glob("[!.]*") if each.name != MODELS)
    yield from _files_below(home, names)
    vaults = {Path(folder) for each in projects.projects(journal.folder) for folder in each.folders}
    if journal.config.vault is not None:
        vaults.add(journal.config.vault)
    for vault in sorted(vaults):
        yield from _files_below(vault, (index_files.FOLDER, INDEX))


def _files_below(top: Path, names: Iterable[str]) -> Iterator[Path]:
    """Yield the files of folders, or files, of these names in a folder; no links."""
    for name in names:
        place = top / name
        for file in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if file.is_file() and not file.is_symlink():
                yield file


def _forms(texts: Iterable[str]) -> set[bytes]:
    """Return texts as files may have them: as they are, in JSON, in UTF-16; small letters."""
    forms = set[bytes]()
    for text in map(str.lower, texts):
        forms |= {text.encode("utf-8", "replace"), json.dumps(text)[1:-1].encode()}
        forms.add(text.encode("utf-16-le", "replace"))
    return forms


def _has_any(data: bytes, needles: set[bytes]) -> bool:
    lowered = data.lower()
    return any(needle in lowered for needle in needles)
