"""What happened before and after a moment: the records of the journal in the order of time."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from vault_index.errors import VaultError
from vault_index.journal.journal import Journal, open_index
from vault_index.search.journal import JournalHit, find, microseconds
from vault_index.search.options import Query
from vault_index.store import filters
from vault_index.store.warm_table import WarmTable

if TYPE_CHECKING:
    import numpy as np

DEEPEST = 50  # records before or after
_RECORD = re.compile(r"\S+-(?:[po]\d+(?:\.\d+)?|s)")
_SESSION = re.compile(r"[0-9a-zA-Z][\w-]{5,}")
_DAY = re.compile(r"(today|yesterday)(?:\s+(?:at\s+)?(\d{1,2}):(\d\d))?", re.IGNORECASE)
_AGO = re.compile(r"(\d+)\s*(minute|hour|day|week)s?\s+ago", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Around:
    """Records in the order of time, those of a session together in it; `anchor` is the place of one.

    `anchor` is None where it is a time: it lies before the record at `before`.
    """

    records: list[JournalHit]
    anchor: int | None
    before: int  # records that come before the anchor

    def sessions(self) -> list[tuple[str, list[JournalHit]]]:
        """Return the records by their sessions; one that goes on later comes twice."""
        groups: list[tuple[str, list[JournalHit]]] = []
        for record in self.records:
            if not groups or groups[-1][0] != record.session:
                groups.append((record.session, []))
            groups[-1][1].append(record)
        return groups


def around(
    journal: Journal,
    anchor: str,
    before: int = 10,
    after: int = 10,
    project: str = "",
    *,
    anywhere: bool = False,
    now: datetime | None = None,
) -> Around:
    """Return the records around an anchor, which is one of them or a moment.

    An anchor is the id of a record, a session's id or its beginning, an ISO time, `yesterday 14:00`,
    `2 days ago`, or a query, whose best hit is taken. Times without a zone are local. With `anywhere`
    a record or session that is named is looked for in all projects, and the others are of its project.
    Raises VaultError for a depth beyond 0 to 50 and for an anchor that nothing answers,
    IndexStateError without an index.
    """
    if not (0 <= before <= DEEPEST and 0 <= after <= DEEPEST):
        raise VaultError(
            f"a timeline shows 0 to {DEEPEST} records before and after", f"use at most {DEEPEST}"
        )
    table = open_index(journal).store
    moment = moment_of(anchor, now or datetime.now(UTC))
    row_id = -1
    if moment is None:
        row_id, project = _row_of(journal, table, anchor.strip(), project, anywhere)
    order = table.by_time(filters.of_records(project=project))
    place: int | None = None
    if moment is not None:
        at = table.columns["at"][order]
        middle = int(at.searchsorted(microseconds(moment)))
        chosen = order[max(0, middle - before) : middle + after]
        middle -= max(0, middle - before)
    else:
        place = int((table.columns["_rowid"][order] == row_id).argmax())
        first = max(0, place - before)
        chosen = order[first : place + after + 1]
        place = middle = place - first
    return Around(_records(table, chosen), place, middle)


def moment_of(text: str, now: datetime) -> datetime | None:
    """Return the moment that a text names: ISO 8601, `yesterday 14:00`, `2 days ago`; else None."""
    text = text.strip()
    if match := _DAY.fullmatch(text):
        day = now.astimezone() - timedelta(days=match[1].lower() == "yesterday")
        hour, minute = int(match[2] or 0), int(match[3] or 0)
        if hour > 23 or minute > 59:
            return None
        return day.replace(hour=hour, minute=minute, second=0, microsecond=0)
    with suppress(ValueError, OverflowError):  # no calendar has the time
        if match := _AGO.fullmatch(text):
            return now - timedelta(**{f"{match[2].lower()}s": int(match[1])})
        if re.match(r"\d{4}-\d\d-\d\d", text):
            moment = datetime.fromisoformat(text)
            return moment.astimezone() if moment.tzinfo is None else moment
    return None


def _row_of(
    journal: Journal, table: WarmTable, anchor: str, project: str, anywhere: bool
) -> tuple[int, str]:
    """Return the row id of the first row of the record that an anchor names, and the project to show."""
    named_in = "" if anywhere else project
    rows: list[int] = []
    if _RECORD.fullmatch(anchor):
        rows = table.named(filters.firsts_of(record=anchor, project=named_in))
    if not rows and _SESSION.fullmatch(anchor):
        rows = table.named(filters.firsts_of(session=anchor, project=named_in))
    if rows:
        return rows[0], str(table.take(rows[:1])[0]["project"]) if anywhere else project
    hits = (
        find(journal, Query(anchor, k=1, project=project), everything=True).hits if anchor else []
    )
    if not hits:
        raise VaultError(
            f"nothing in the journal is at {anchor!r}", "name a record, a time or a text"
        )
    where = filters.firsts_of(record=hits[0].id, path=hits[0].path)
    return table.named(where)[0], project


def _records(table: WarmTable, places: np.ndarray) -> list[JournalHit]:
    rows = table.take(table.columns["_rowid"][places].tolist())
    return [JournalHit.of_row(row) for row in rows]
