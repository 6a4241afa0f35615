"""The records of the journal around a moment, in the order of time."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from vault_index.errors import VaultError
from vault_index.journal.journal import Journal, open_index
from vault_index.journal.record import Around, JournalHit
from vault_index.retrieval.hit import Query
from vault_index.retrieval.journal import find, microseconds
from vault_index.store import filters, times
from vault_index.store.reader import Reader

DEEPEST = 50  # records before or after
_NO_ID = "name one as a search shows it, a time, or a text of several words"
_RECORD = re.compile(r"\S+-(?:[po]\d+(?:\.\d+)?|s)")
_SESSION = re.compile(r"[0-9a-zA-Z][\w-]{5,}")
_LIKE_SESSION = re.compile(r"(?=\D*\d)[0-9a-f]{6,}(?:-[0-9a-f]+)*")


def around(
    journal: Journal,
    anchor: str,
    before: int = 10,
    after: int = 10,
    project: str | None = "",
    *,
    anywhere: bool = False,
    now: datetime | None = None,
) -> Around:
    """Return the records around an anchor, which is one of them or a moment.

    An anchor is the id of a record, a session's id or its beginning, a time as `moments.span_of` reads
    it, or a query, whose best hit is taken. With `anywhere` a record or session that is named is looked
    for in all projects, and the others are of its project. Without a project (None) only these are
    looked for. Raises VaultError for a depth beyond 0 to 50, for an unknown id or time and for an anchor
    that nothing answers, IndexStateError without an index.
    """
    if not (0 <= before <= DEEPEST and 0 <= after <= DEEPEST):
        message = f"a timeline shows 0 to {DEEPEST} records before and after"
        raise VaultError(message, f"use at most {DEEPEST}")
    table = open_index(journal).store
    is_id = anchor.strip().isdigit()  # and no date without its marks
    span = None if is_id else times.span_of(anchor, now or datetime.now(UTC))
    moment = span[0] if span else None
    anchored = -1
    if moment is None:
        anchored, project = _anchor_row(journal, table, anchor.strip(), project, anywhere)
    if project is None:
        return Around(())
    order = table.by_time(filters.of_records(project=project))
    if moment is None:
        middle, after = int((order == anchored).argmax()), after + 1  # with the anchor itself
    else:
        middle = int(table.columns["at"][order].searchsorted(microseconds(moment)))
    first = max(0, middle - before)
    chosen = table.take(order[first : middle + after])
    records = tuple(map(JournalHit.of_row, chosen))
    return Around(records, "" if moment else records[middle - first].id, middle - first)


def _anchor_row(
    journal: Journal, table: Reader, anchor: str, project: str | None, anywhere: bool
) -> tuple[int, str | None]:
    """Return the place of the first row of the record that an anchor names, and the project to show."""
    named_in = "" if anywhere else project or ""
    for shape, kind in ((_RECORD, "record"), (_SESSION, "session")):
        if shape.fullmatch(anchor):
            where = filters.firsts_of(project=named_in, **{kind: anchor})
            if named := table.by_time(where)[:1].tolist():
                return named[0], str(table.take(named)[0]["project"]) if anywhere else project
    if times.is_time(anchor):
        raise VaultError(f"no date {anchor!r}", times.HINT)
    if _RECORD.fullmatch(anchor) or _LIKE_SESSION.fullmatch(anchor):
        within = f" of {named_in}" if named_in else ""
        raise VaultError(f"no record or session {anchor!r} in the journal{within}", _NO_ID)
    if project is None:
        return -1, None
    wanted = Query(anchor, k=1, project=project)
    for hit in find(journal, wanted, everything=True).hits if anchor else ():
        where = filters.firsts_of(record=hit.id)
        return int(table.by_time(where)[0]), project
    hint = "name a record, a time or a text"
    raise VaultError(f"nothing in the journal is at {anchor!r}", hint)
