"""The journal as its files have it: sessions by time, a session or a record by name, what is there."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from vault_index import files
from vault_index.errors import VaultError
from vault_index.journal import places, projects, session_file, take
from vault_index.journal.journal import Journal, open_index
from vault_index.journal.record import KINDS, Record, Session, short_id

_MARK = b"\n<!-- record "
_RECORD = re.compile(rb'^<!-- record \{"id": "[^"]*-([pos])[\d.]*"', re.MULTILINE)
_LETTERS = {kind[0].encode(): kind for kind in KINDS}
_RECORD_ID = re.compile(r".+-(?:[po]\d[\d.]*|s)")


@dataclass(slots=True)
class Totals:
    """What a journal holds: counts by project and by kind, bytes, the last write, what is damaged."""

    sessions: int = 0
    bytes: int = 0
    unread: int = 0  # lines of transcripts of a kind that nobody described
    last: float = 0.0  # seconds since 1970
    projects: dict[str, int] = field(default_factory=dict)
    records: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    problems: list[str] = field(default_factory=list)


def latest(
    journal: Journal, project: str = "", since: str = "", until: str = "", limit: int = 20
) -> list[tuple[Path, Session]]:
    """Return so many sessions that began last in a time, the latest first.

    Times are ISO 8601. A file that cannot be read is passed over: `totals` names it. Only of those
    that are returned more than the head is parsed.
    """
    there: list[tuple[Path, Session]] = []
    for day, of_day in _days(journal, project):
        if until and day > until[:10]:
            continue
        if len(there) >= limit or (since and day < since[:10]):
            break
        heads = [read for file in of_day if (read := _read(file))]
        for file, data, head in sorted(heads, key=lambda read: read[2].began, reverse=True):
            inside = (not since or head.began >= since) and (not until or head.began < until)
            if inside and len(there) < limit:
                with contextlib.suppress(VaultError):
                    there.append((file, session_file.parse(data, file)))
    return there


def days(journal: Journal, project: str = "") -> dict[str, int]:
    """Count the sessions of each day, `2026-11-22`, from the names of their files alone."""
    counts = Counter(
        _day_of(file) for of_month in places.months(journal.folder, project) for file in of_month
    )
    return dict(sorted(counts.items()))


def _days(journal: Journal, project: str) -> Iterator[tuple[str, Iterable[Path]]]:
    """Yield the days, `2026-11-22`, with the session files of each, the latest first."""
    for of_month in places.months(journal.folder, project):
        yield from groupby(sorted(of_month, key=_day_of, reverse=True), key=_day_of)


def _day_of(file: Path) -> str:
    return f"{file.parent.name}-{file.name[:2]}"


def _read(file: Path) -> tuple[Path, bytes, Session] | None:
    """Return a session file with its bytes and its session without records; None for a damaged one."""
    try:
        data = files.read_file(file)
        return file, data, session_file.parse(data.partition(_MARK)[0], file)
    except VaultError:
        return None


def session_of(journal: Journal, name: str) -> tuple[Path, Session, tuple[Record, ...]]:
    """Return a session, named by its id, the beginning of that, or one of its records, and its records.

    Of a record's id only that record. Raises VaultError if there is none, or several.
    """
    is_record = _RECORD_ID.fullmatch(name) is not None
    called = places.file_name(name.rpartition("-")[0] if is_record else name)
    there = _named(name, is_record, places.session_files(journal.folder, named=called))
    if not there:  # the beginning of an id that the file is not called by: UUID 7
        there = _named(name, is_record, places.session_files(journal.folder))
    if not there:
        raise VaultError(
            f"nothing in the journal is named {name!r}", "look for it: lessons journal sessions"
        )
    if len(there) > 1:
        ids = ", ".join(sorted(session.id for _, session in there)[:5])
        raise VaultError(f"{name!r} may be {ids}", "name more of it")
    file, session = there[0]
    chosen = [each for each in session.records if not is_record or each.id == name]
    return file, session, tuple(chosen)


def _named(name: str, is_record: bool, some: Iterable[Path]) -> list[tuple[Path, Session]]:
    """Return those of these session files that a name is the name of."""
    wanted = (f'"id": "{name}"' if is_record else name).encode("utf-8", "replace")
    there: list[tuple[Path, Session]] = []
    for file in some:
        data = files.read_file(file)
        if wanted in (data if is_record else data.partition(_MARK)[0]):
            session = session_file.parse(data, file)
            names = (short_id(session.id), *(each.id for each in session.records))
            if session.id.startswith(name) or name in names:
                there.append((file, session))
    return there


def totals(journal: Journal) -> Totals:
    """Count what there is, without reading more than the head of each session."""
    counted = Totals()
    for file in places.session_files(journal.folder):
        try:
            data = files.read_file(file)
            head = session_file.parse(data.partition(_MARK)[0], file)
            counted.last = max(counted.last, file.stat().st_mtime)
        except VaultError as error:
            counted.problems.append(error.message)
            continue
        except OSError:  # removed meanwhile
            continue
        counted.sessions += 1
        counted.bytes += len(data)
        counted.unread += head.unread
        counted.projects[head.project] = counted.projects.get(head.project, 0) + 1
        for letter in _RECORD.findall(data):
            counted.records[_LETTERS[letter]] += 1
    return counted


# The state of the journal, for `lessons status` and `lessons journal status`. Reads only.


def overview(journal: Journal) -> dict[str, Any]:
    """Return what is recorded and kept, when it was written last, and what went wrong, as JSON values."""
    counted = totals(journal)
    last = datetime.fromtimestamp(counted.last, UTC).isoformat() if counted.last else ""
    return {
        "folder": str(journal.folder),
        "recorded": projects.recorded_folders(journal),
        "sessions": counted.sessions,
        "records": counted.records,
        "projects": counted.projects,
        "mb": counted.bytes / 1e6,
        "last": last,
        "unread": counted.unread,
        "waiting": len(take.waiting(journal)),
        "index": _index(journal) if counted.sessions else {},
        "problems": counted.problems,
        "complaints": take.complaints(journal),
    }


def _index(journal: Journal) -> dict[str, Any]:
    try:
        opened = open_index(journal)
    except VaultError as error:
        return {"error": f"{error.message}; {error.hint}"}
    return {"embedder": opened.embedder, "sessions": opened.sessions}
