"""The sessions of the journal in the user's database: their moments, and the records made of these.

The table `forgotten` notes by hashes alone what was forgotten, the id of a session and the uuid of a
moment, which stays away though its transcript is still there.
"""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from vault_index import state
from vault_index.errors import VaultError
from vault_index.journal import backlog, projects
from vault_index.journal.journal import Journal, open_index
from vault_index.journal.record import KINDS, Command, ReadTo, Record, Session, short_id
from vault_index.transcripts.moments import Moment

_COLUMNS = [each.name for each in fields(Session) if each.name != "records"]
_SELECT = f"SELECT {', '.join(_COLUMNS)} FROM session"
_DEFAULTS = {each.name: each.default for each in fields(Moment)}
_ROW = ("place", "kind", "number", "uuid")  # of a moment; the rest is in its JSON
_RECORD_ID = re.compile(r".+-(?:[po]\d[\d.]*|s)")


def sessions(db: sqlite3.Connection, where: str = "", values: Sequence[Any] = ()) -> list[Session]:
    """Return sessions without their records; `where` follows the table in SQL."""
    rows = (
        dict(zip(_COLUMNS, row, strict=True)) for row in db.execute(f"{_SELECT} {where}", values)
    )
    return [Session(**row | {"read": ReadTo(**json.loads(row["read"]))}) for row in rows]


def with_records(db: sqlite3.Connection, session: Session) -> Session:
    """Return a session with its records."""
    rows = db.execute("SELECT data FROM record WHERE session = ? ORDER BY place", [session.short])
    return replace(session, records=tuple(_record(json.loads(data)) for (data,) in rows))


def _record(values: dict[str, Any]) -> Record:
    lists = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
    lists["commands"] = tuple(Command(**each) for each in values["commands"])
    return Record(**{**values, **lists})


def moments(db: sqlite3.Connection, short: str) -> list[Moment]:
    """Return the moments of a session in the order of time."""
    rows = db.execute(
        f"SELECT {', '.join(_ROW)}, data FROM moment WHERE session = ? ORDER BY place", [short]
    )
    return [_moment(*row) for row in rows]


def _moment(position: int, kind: str, number: int, uuid: str, data: str) -> Moment:
    rest = json.loads(data)
    rest["files"] = tuple(rest.get("files", ()))
    return Moment(kind, place=position, number=number, uuid=uuid, **rest)


def add_moments(db: sqlite3.Connection, short: str, some: Iterable[Moment]) -> None:
    """Add moments to a session."""
    marks = ", ".join("?" * len(_ROW))
    into = f"INSERT INTO moment (session, {', '.join(_ROW)}, data) VALUES (?, {marks}, ?)"
    db.executemany(into, ((short, *map(each.__getattribute__, _ROW), _rest(each)) for each in some))


def _rest(moment: Moment) -> str:
    """Return the fields of a moment that have no column of their own, as JSON."""
    values = {name: getattr(moment, name) for name in _DEFAULTS if name not in _ROW}
    return json.dumps({name: text for name, text in values.items() if text != _DEFAULTS[name]})


def write(db: sqlite3.Connection, session: Session) -> None:
    """Write a session and its records, in place of earlier ones."""
    values = {name: getattr(session, name) for name in _COLUMNS}
    values["read"] = json.dumps(asdict(session.read))
    named = ", ".join(f":{name}" for name in _COLUMNS)
    changed = ", ".join(f"{name} = excluded.{name}" for name in _COLUMNS)
    into = f"INSERT INTO session ({', '.join(_COLUMNS)}) VALUES ({named})"
    db.execute(f"{into} ON CONFLICT (short) DO UPDATE SET {changed}", values)
    db.execute("DELETE FROM record WHERE session = ?", [session.short])
    db.executemany(
        "INSERT INTO record (session, place, id, kind, data) VALUES (?, ?, ?, ?, ?)",
        (
            (session.short, position, each.id, each.kind, json.dumps(asdict(each)))
            for position, each in enumerate(session.records)
        ),
    )


def known(db: sqlite3.Connection, transcript: Path) -> Session | None:
    """Return the session of a transcript, also if the transcript was moved since."""
    stem = transcript.stem.removeprefix("agent-")
    names = [str(transcript), stem, stem[-36:]]  # a rollout's name ends with its id
    found = sessions(db, "WHERE transcript = ? OR id IN (?, ?)", names)
    same = [each for each in found if each.transcript == names[0]]
    return next(
        iter([*same, *(each for each in found if not Path(each.transcript).exists())]), None
    )


def free_short(db: sqlite3.Connection, session: str) -> str:
    """Return the beginning of the ids of a new session's records, which no other session has."""
    named, number = short_id(session) or "session", 1
    short = named
    while db.execute("SELECT 1 FROM session WHERE short = ?", [short]).fetchone():
        number += 1
        short = f"{named}-{number}"
    return short


def bury(db: sqlite3.Connection, names: Iterable[str]) -> None:
    """Note ids of sessions and uuids of moments as forgotten, for good."""
    db.executemany(
        "INSERT OR IGNORE INTO forgotten VALUES (?)", ((hash_of(each),) for each in names)
    )


def is_buried(db: sqlite3.Connection, name: str) -> bool:
    """Whether a session or a moment was forgotten."""
    return (
        db.execute("SELECT 1 FROM forgotten WHERE hash = ?", [hash_of(name)]).fetchone() is not None
    )


def hash_of(text: str) -> str:
    """Return the hash by which a forgotten name is noted."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:24]


def latest(
    journal: Journal, project: str = "", since: str = "", until: str = "", limit: int = 20
) -> list[Session]:
    """Return so many sessions that began last in a time, the latest first; times are ISO 8601."""
    where, values = "WHERE began >= ?", [since]
    for condition, value in ((" AND began < ?", until), (" AND project = ?", project)):
        where, values = (where + condition, [*values, value]) if value else (where, values)
    with state.reading(journal.home) as db:
        chosen = sessions(db, f"{where} ORDER BY began DESC LIMIT ?", [*values, limit])
        return [with_records(db, each) for each in chosen]


def days(journal: Journal, project: str = "") -> dict[str, int]:
    """Count the sessions of each day, `2026-11-22`."""
    where = "WHERE project = ?" if project else ""
    counted = f"SELECT substr(began, 1, 10) AS day, count(*) FROM session {where} GROUP BY day"
    with state.reading(journal.home) as db:
        return dict(db.execute(f"{counted} ORDER BY day", [project] if project else []))


def find(journal: Journal, name: str) -> Session:
    """Return a session, named by its id, the beginning of that, or one of its records.

    With a record's id it has only that record. Raises VaultError if nothing has the name, or several.
    """
    is_record = _RECORD_ID.fullmatch(name) is not None
    where, like = "WHERE short IN (SELECT session FROM record WHERE id = ?)", [name]
    if not is_record:
        begin = name.replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_")
        where, like = r"WHERE id LIKE ? ESCAPE '\' OR short = ?", [f"{begin}%", name]
    with state.reading(journal.home) as db:
        found = [with_records(db, each) for each in sessions(db, where, like)]
    if not found or not name:
        raise VaultError(
            f"nothing in the journal is named {name!r}", "look for it: lessons journal sessions"
        )
    if len(found) > 1:
        ids = ", ".join(sorted(each.id for each in found)[:5])
        raise VaultError(f"{name!r} may be {ids}", "name more of it")
    records = [each for each in found[0].records if not is_record or each.id == name]
    return replace(found[0], records=tuple(records))


def named(journal: Journal, begin: str) -> Session | None:
    """Return a session whose id begins so, without its records; None for one that is not kept."""
    with state.reading(journal.home) as db:
        where = "WHERE substr(id, 1, ?) = ? ORDER BY began"
        return next(iter(sessions(db, where, [len(begin), begin])), None)


def is_forgotten(journal: Journal, session: str) -> bool:
    """Whether a session was forgotten."""
    with state.reading(journal.home) as db:
        return is_buried(db, session)


def of_transcript(journal: Journal, transcript: Path) -> Session | None:
    """Return the session of a transcript, without its records; None for one that is not kept."""
    with state.reading(journal.home) as db:
        return next(iter(sessions(db, "WHERE transcript = ?", [str(transcript)])), None)


def moments_of(journal: Journal, session: Session) -> list[Moment]:
    """Return the moments of a session in the order of time."""
    with state.reading(journal.home) as db:
        return moments(db, session.short)


def is_empty(journal: Journal) -> bool:
    """Whether no session is kept."""
    with state.reading(journal.home) as db:
        return db.execute("SELECT 1 FROM session LIMIT 1").fetchone() is None


@dataclass(frozen=True, slots=True)
class JournalIndexState:
    """The index of a journal, empty without sessions; of one that cannot be opened the `error`."""

    embedder: str = ""
    sessions: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True)
class JournalOverview:
    """The state of a journal: the recorded folders, the kept sessions, the failures."""

    folder: str
    recorded: Sequence[str]
    sessions: int
    records: Mapping[str, int]  # of each kind
    projects: Mapping[str, int]  # sessions of each
    mb: float
    last: str
    unread: int  # lines of a kind that nobody described
    before: str  # the folder with the sessions of a version that kept them as files
    waiting: int
    index: JournalIndexState
    complaints: Sequence[str]
    hooks: Sequence[str] = ()  # the settings of the agent whose hooks tell it of the end of turns


def overview(journal: Journal) -> JournalOverview:
    """Look at a journal; whoever knows of agents adds the hooks."""
    with state.reading(journal.home) as db:
        of_projects = dict(db.execute("SELECT project, count(*) FROM session GROUP BY project"))
        unread, last = db.execute("SELECT total(unread), max(written) FROM session").fetchone()
        kinds = dict(db.execute("SELECT kind, count(*) FROM record GROUP BY kind"))
        (size,) = db.execute("SELECT total(length(data)) FROM moment").fetchone()
    count = sum(of_projects.values())
    is_older = any(journal.folder.glob("*/project.toml"))
    return JournalOverview(
        folder=str(journal.home / state.FILE),
        recorded=projects.recorded_folders(journal),
        sessions=count,
        records={kind: kinds.get(kind, 0) for kind in KINDS},
        projects=of_projects,
        mb=size / 1e6,
        last=datetime.fromtimestamp(last / 1e9, UTC).isoformat() if last else "",
        unread=int(unread),
        before="" if count or not is_older else str(journal.folder),
        waiting=len(backlog.waiting(journal)),
        index=_index(journal) if count else JournalIndexState(),
        complaints=backlog.complaints(journal),
    )


def _index(journal: Journal) -> JournalIndexState:
    try:
        opened = open_index(journal)
    except VaultError as error:
        return JournalIndexState(error=error.message)
    return JournalIndexState(opened.embedder, opened.sessions)
