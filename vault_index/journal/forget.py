"""Take sessions or records out of the journal for good: rows, vectors; and show that they are.

Forgotten sessions stay so, though the agent's transcript is still there: hashes are noted (see
`archive`) of each session, and of each moment for the copies that an agent makes when a session is
resumed. A session that loses records by their text keeps the others, and is never captured again.

Proposals and conversations that were made of the records go with them. A note in `forgetting.json` says
what is to go before anything goes. After a kill or on a full disk the next command, or the watcher,
finishes it.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from vault_index import files, state
from vault_index.errors import VaultError
from vault_index.features import JournalTable
from vault_index.hotpath import index_files
from vault_index.journal import archive, backlog, importing, index, observe, projects
from vault_index.journal.journal import INDEX, PENDING, Journal, held
from vault_index.journal.record import OBSERVATION, Session, private_id
from vault_index.text.words import count
from vault_index.transcripts.moments import PERSON, Moment

MODELS = "models"

_PIECE = 48  # characters of a text that are looked for in the bytes of files
_LEAST = 16  # shorter ones are in other texts, too
_MAX_PIECES = 2_000
_AT_ONCE = 500  # files
_DAY_SECONDS = 86_400


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The number of things taken out, and the proof.

    `left` are files that still have something of it, and `lessons` files of accepted lessons, which
    stay.
    """

    sessions: int = 0
    records: int = 0
    beside: int = 0  # proposals and conversations that were made of it
    files_searched: int = 0
    bytes_searched: int = 0
    left: tuple[str, ...] = ()
    lessons: tuple[str, ...] = ()

    def went(self, journal: Journal) -> str:
        days = journal.config[JournalTable].retention_days
        which = count(self.sessions, "session")
        return f"{which} older than {count(days, 'day')} went" if self.sessions else ""

    @property
    def proof(self) -> str:
        where = f"{self.bytes_searched:,} bytes of {self.files_searched} files"
        stays = f"; accepted lessons keep it: {', '.join(self.lessons)}" if self.lessons else ""
        if self.left:
            return f"something of it is still in {', '.join(self.left)} ({where} searched){stays}"
        return f"nothing of it is left in {where}{stays}"


@dataclass(frozen=True, slots=True)
class _ForgetRequest:
    """A wish to forget sessions by their ids or, with `matching`, only their records with that text."""

    sessions: tuple[str, ...] = ()
    matching: str = ""
    texts: tuple[str, ...] = ()  # what to look for in the bytes of files
    expired: bool = False  # what was made of the sessions stays, and they may be imported again
    transcripts: tuple[str, ...] = ()  # of sessions that go whole and for good


def forget(
    journal: Journal, *, session: str = "", project: str = "", before: str = "", matching: str = ""
) -> Forgotten:
    """Take out a session, by its id or the beginning of it, with those that it started; a project;
    all sessions that ended before a date; or the records that have a text, in any case of its letters.

    Those that are named together narrow the choice. The bytes are searched even if nothing matches.

    Raises VaultError if nothing is named, and WriteError.
    """
    if not (session or project or before or matching):
        raise VaultError("nothing to forget is named", "name a session, project, date or text")
    if not journal.folder.is_dir() and archive.is_empty(journal):
        return Forgotten()
    with held(journal.folder):
        _finish_noted(journal)
        with state.reading(journal.home) as db:
            chosen = [
                each
                for each in archive.sessions(db)
                if (not project or each.project == project)
                and _is_named(each, session)
                and (not before or each.ended < before)
            ]
        forgotten = _take_out(journal, chosen, matching, for_good=True)
        drafts = journal.home / projects.PROPOSALS / project  # which the name leads to
        if project and not (session or before or matching or drafts.is_dir()):
            with state.writing(journal.home) as db:
                db.execute("DELETE FROM project WHERE name = ?", [project])
    return forgotten


def finish(journal: Journal) -> Forgotten | None:
    """Take out what an earlier call wrote down and did not finish; None if there is nothing.

    Raises VaultError, WriteError.
    """
    with held(journal.folder):
        return _finish_noted(journal)


def _finish_noted(journal: Journal) -> Forgotten | None:
    data = files.read_if_any(journal.folder / PENDING)
    if data is None:
        return None
    try:
        values = json.loads(data)
        names = [name for name in ("sessions", "texts", "transcripts") if name in values]
        wanted = _ForgetRequest(**{**values, **{name: tuple(values[name]) for name in names}})
    except (ValueError, TypeError, KeyError):  # of a write that a kill cut short
        wanted = _ForgetRequest()
    return _finish(journal, wanted)


def expire(journal: Journal) -> Forgotten:
    """Take out the sessions that ended, and were taken in, so many days before the latest but one day.

    `retention_days` says how many. A clock alone lets nothing go, nor does the one day on which it was
    wrong; an old transcript that somebody imports is kept as long as a new one. Raises VaultError,
    WriteError.
    """
    for folder, _, _ in os.walk(journal.config.home):
        files.remove_left_overs(Path(folder))
    days = journal.config[JournalTable].retention_days
    with state.reading(journal.home) as db:
        latest = "SELECT max(written) FROM session"
        but_one = f"{latest} WHERE written < ({latest}) - ?"
        (last,) = db.execute(but_one, [_DAY_SECONDS * 1e9]).fetchone()
        oldest = max(0, min(time.time(), (last or 0) / 1e9) - days * _DAY_SECONDS)
        ended = datetime.fromtimestamp(oldest, UTC).isoformat()
        where = "WHERE written < ? AND ended < ?"
        old = archive.sessions(db, where, [int(oldest * 1e9), ended]) if days else []
    if not old:
        return Forgotten()
    with held(journal.folder):
        return _take_out(journal, old, "", for_good=False)


def _is_named(session: Session, name: str) -> bool:
    names = {session.short, session.id, session.parent}
    begins = len(name) >= 8 and (session.id.startswith(name) or session.parent.startswith(name))
    return not name or name in names or begins


def _take_out(
    journal: Journal, chosen: list[Session], matching: str, *, for_good: bool
) -> Forgotten:
    """Write down which sessions or records go, then remove them and all that was made of them."""
    ids, dropped, records, transcripts = list[str](), list[Moment](), 0, list[str]()
    with state.reading(journal.home) as db:
        for session in (archive.with_records(db, each) for each in chosen):
            went, remaining = _split(session, archive.moments(db, session.short), matching)
            if went or not matching:
                ids.append(session.id)
                transcripts += [session.transcript] if for_good and not matching else []
                dropped += went
                records += len(session.records) - len(observe.seen(session, remaining).records)
    if not ids and not matching:
        return Forgotten()
    texts = (matching,) if matching else tuple(_pieces(dropped))
    wanted = _ForgetRequest(
        tuple(sorted({*ids})), matching, texts, not for_good, tuple(transcripts)
    )
    files.replace_file(journal.folder / PENDING, json.dumps(asdict(wanted)).encode())
    return replace(_finish(journal, wanted), records=records)


def _split(session: Session, moments: list[Moment], text: str) -> tuple[list[Moment], list[Moment]]:
    """Return the moments of records that have a text (a prompt with its whole turn), and the others."""
    named = [each for each in moments if _has(each, text)]
    numbers = {each.number for each in named if each.kind == PERSON}
    uuids = {each.uuid for each in named if each.uuid}
    for record in session.records:
        made_of = set(record.uuids) if record.kind == OBSERVATION else set()
        uuids |= made_of if uuids & made_of else set()
    sides: tuple[list[Moment], list[Moment]] = ([], [])
    for each in moments:
        is_of_record = each.uuid in uuids and each.kind != PERSON
        goes = not text or each.number in numbers or is_of_record or _has(each, text)
        sides[not goes].append(each)
    return sides


def _finish(journal: Journal, wanted: _ForgetRequest) -> Forgotten:
    """Remove the wanted sessions or records, in an order in which a kill loses nothing of the note."""
    removed = _delete(journal, wanted)
    beside = 0 if wanted.expired else _remove_beside(journal, wanted)
    backlog.forget(journal, wanted.transcripts)
    state.shrink(journal.home)
    index.remove(journal, wanted.sessions)
    (journal.folder / PENDING).unlink(missing_ok=True)
    needles, all_files = _forms(wanted.texts), [*_all_files(journal)]
    if not wanted.matching:  # a text that another session has, too, is that session's
        needles -= _kept(journal, needles)
        needles |= {os.fsencode(each).lower() for each in wanted.transcripts}
    size = sum((files.stamp(file) or (0,))[0] for file in all_files)
    found, home = _with_any(all_files, needles), journal.config.home
    lessons = tuple(file for file in found if home not in Path(file).parents)
    remaining = tuple(file for file in found if file not in lessons)
    return Forgotten(removed, 0, beside, len(all_files), size, remaining, lessons)


def _delete(journal: Journal, wanted: _ForgetRequest) -> int:
    """Delete wanted sessions, or wanted records, from the database; return the number of sessions."""
    removed = 0
    with state.writing(journal.home) as db:
        where = f"WHERE id IN ({state.slots(wanted.sessions)})"
        for each in archive.sessions(db, where, wanted.sessions):
            session = archive.with_records(db, each)
            dropped, remaining = _split(
                session, archive.moments(db, session.short), wanted.matching
            )
            if wanted.matching and not dropped:
                continue
            if not wanted.expired:
                archive.bury(db, [session.id, *(each.uuid for each in dropped if each.uuid)])
            key = importing.key_of(Path(session.transcript))
            db.execute("DELETE FROM transcript WHERE hash = ?", [key])
            now = observe.seen(session, remaining)
            if not now.records:
                db.execute("DELETE FROM session WHERE short = ?", [session.short])
                removed += 1
                continue
            places = ((session.short, each.place) for each in dropped)
            db.executemany("DELETE FROM moment WHERE session = ? AND place = ?", places)
            archive.write(db, replace(now, written=time.time_ns()))
    return removed


def _kept(journal: Journal, needles: set[bytes]) -> set[bytes]:
    """Return the texts that a kept session has, too."""
    found = set[bytes]()
    with state.reading(journal.home) as db:
        for (data,) in db.execute("SELECT data FROM moment UNION ALL SELECT data FROM record"):
            lowered = data.lower().encode()
            found |= {needle for needle in needles - found if needle in lowered}
    return found


def _remove_beside(journal: Journal, wanted: _ForgetRequest) -> int:
    """Remove proposals and conversations that were made of what goes; return their number."""
    needles = _forms(wanted.texts)
    if not wanted.matching:
        needles |= {private_id(session).encode() for session in wanted.sessions}
    removed = 0
    home = journal.config.home
    for file in _files_below(home, (projects.PROPOSALS,)):
        if _has_any(files.read_if_any(file) or b"", needles):
            removed += 1
            with files.writing(file):
                file.unlink(missing_ok=True)
    with state.writing(home) as db:
        for table, column in (("rejected", "session"), ("conversation", "exchanges")):
            for id, text in db.execute(f"SELECT rowid, {column} FROM {table}").fetchall():
                if _has_any(text.encode(), needles):
                    removed += 1
                    db.execute(f"DELETE FROM {table} WHERE rowid = ?", [id])
        for id, text in db.execute("SELECT id, said FROM injection WHERE said <> ''").fetchall():
            if _has_any(text.encode(), needles):
                db.execute("UPDATE injection SET said = '' WHERE id = ?", [id])
    return removed


def _has(moment: Moment, text: str) -> bool:
    each = (moment.text, moment.about, *moment.files, moment.branch)
    return any(text.casefold() in one.casefold() for one in each)


def _pieces(moments: list[Moment]) -> list[str]:
    """Return the texts to look for: the beginning of each line that is long enough."""
    texts = (text for each in moments for text in (each.text, each.about))
    lines = (line.strip()[:_PIECE] for text in texts for line in text.split("\n")[:3])
    return [*dict.fromkeys(line for line in lines if len(line) >= _LEAST)][:_MAX_PIECES]


def _with_any(paths: list[Path], needles: set[bytes]) -> list[str]:
    """Return the files that have one of the needles.

    By another process: SQLite's locks of this one would end with a file of the database that it closes.
    """
    found = list[str]()
    for start in range(0, len(paths) if needles else 0, _AT_ONCE):
        batch = map(str, paths[start : start + _AT_ONCE])
        words = ["grep", "-aFil", "--null", "-f", "-", "--", *batch]
        result = subprocess.run(
            words, input=b"\n".join(needles), env={**os.environ, "LC_ALL": "C"}, capture_output=True
        )
        found += filter(None, os.fsdecode(result.stdout).split("\0"))
    return found


def _all_files(journal: Journal) -> Iterator[Path]:
    """Yield the user's files, except models, and the vaults that sessions were about."""
    home = journal.config.home
    names = sorted(each.name for each in home.glob("[!.]*") if each.name != MODELS)
    yield from _files_below(home, names)
    vaults = {Path(folder) for each in projects.projects(journal.home) for folder in each.folders}
    if journal.config.vault is not None:
        vaults.add(journal.config.vault)
    for vault in sorted(vaults):
        yield from _files_below(vault, (index_files.FOLDER, INDEX))


def _files_below(top: Path, names: Iterable[str]) -> Iterator[Path]:
    for name in names:
        path = top / name
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file() and not file.is_symlink():
                yield file


def _forms(texts: Iterable[str]) -> set[bytes]:
    """Return texts as files may have them: as they are, in JSON; small letters."""
    forms = set[bytes]()
    for text in map(str.lower, texts):
        forms |= {text.encode("utf-8", "replace"), json.dumps(text)[1:-1].encode()}
    return forms


def _has_any(data: bytes, needles: set[bytes]) -> bool:
    lowered = data.lower()
    return any(needle in lowered for needle in needles)
