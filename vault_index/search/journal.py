"""A query -> records of the journal, with the evidence for each.

The score is that of lessons: `cosine + 0.01 x BM25`, of the best of a record's rows. A prompt and the
observations of its turn are one hit, the best of them, with the uuids of all that were found: without
that a turn takes several of the first places (.80 of right answers among the first five, with it .82).
Recency is a window and no decay: what lies outside is counted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from vault_index.errors import IndexStateError, VaultError
from vault_index.journal import index
from vault_index.journal.journal import Journal, open_index
from vault_index.search.hit import below, first_of
from vault_index.search.query import OF_JOURNAL, Query, query_vector, searched
from vault_index.search.scoring import Evidence, Limits, gather
from vault_index.store import filters, moments
from vault_index.store.reader import Reader

if TYPE_CHECKING:
    import numpy as np

LIMITS = Limits(scored=500, matched=3_000, first=100)
EXPLAINED = 64  # hits, when it is to be told what was left out
# Of 60 questions about 37 real sessions a search finds 50 answers, and with this floor 49; of ten
# questions about no work at all it then finds nothing for nine, of 150 about other work for 27%.
MIN_SCORE = 0.35


@dataclass(frozen=True, slots=True)
class JournalHit:
    """A record and why it was found. `score` is `cosine + full_text`, in absolute units.

    `text` is the best of its pieces. `uuids` are those of the transcript's records that it was made
    from, and those of the other records of its turn that were found.
    """

    id: str
    kind: str  # prompt | observation | summary
    session: str
    project: str
    branch: str
    at: str  # ISO 8601, UTC; "" where the transcript has no time
    number: int
    title: str
    text: str
    type: str
    concepts: tuple[str, ...]
    files: tuple[str, ...]
    uuids: tuple[str, ...]
    score: float = 0.0
    cosine: float = 0.0
    full_text: float = 0.0
    path: str = ""  # of the session's file, from the journal's folder; not in the JSON

    def as_json(self, *, explain: bool = False) -> dict[str, Any]:
        """Return the hit as JSON values; with `explain` also `cosine` and `full_text`."""
        values = {name: getattr(self, name) for name in _IN_JSON}
        values |= {name: list(value) for name, value in values.items() if isinstance(value, tuple)}
        evidence = ("score", "cosine", "full_text") if explain else ("score",)
        return values | {name: round(getattr(self, name), 4) for name in evidence}

    @classmethod
    def of_row(
        cls, row: Mapping[str, Any], cosine: float = 0.0, full_text: float = 0.0
    ) -> JournalHit:
        """Return the hit of a row of the journal's table."""
        same: dict[str, Any] = {name: row[name] for name in _AS_IN_ROW}
        return cls(
            **same,
            id=row["record"],
            at=row["at"].astimezone(UTC).isoformat() if row["at"] else "",
            concepts=tuple(row["concepts"] or ()),
            files=tuple(row["files"] or ()),
            uuids=tuple(row["uuids"] or ()),
            score=cosine + full_text,
            cosine=cosine,
            full_text=full_text,
        )


_AS_IN_ROW = "kind session project branch number title text type path".split()
_IN_JSON = (
    *("id", "kind", "session", "project", "branch", "at", "number", "title", "text", "type"),
    *("concepts", "files", "uuids"),
)


@dataclass(frozen=True, slots=True)
class JournalResults:
    """The results of a search of the journal. `dropped` are (hit, why it is not in the answer).

    `older` counts those of the first `k` without a window that are before it, `later` those after.
    """

    hits: list[JournalHit]
    dropped: list[tuple[JournalHit, str]] = field(default_factory=list)
    text_only: str = ""  # why only full text was searched, if so
    older: int = 0
    later: int = 0
    since: datetime | None = None  # the beginning of the window


def find(journal: Journal, query: Query, *, everything: bool = False) -> JournalResults:
    """Search the journal, or list what touched `query.file` by time if there is no text.

    `query.filters.since` begins the window; without it that is `journal.window_days` ago, unless
    `everything` is asked for. A hit has the least score of the query, without one `MIN_SCORE`, or all of
    its words; full text alone has no floor. Raises IndexStateError without an index, VaultError for a
    query of nothing.
    """
    try:
        return _find(journal, query, everything)
    except IndexStateError:  # another index took its place in the middle of it, or there is none
        journal.opened = None
        return _find(journal, query, everything)


def _find(journal: Journal, query: Query, everything: bool) -> JournalResults:
    opened = open_index(journal)
    since = query.filters.since
    if since is None and not everything and journal.config.journal.window_days:
        since = datetime.now(UTC) - timedelta(days=journal.config.journal.window_days)
    text = searched(query.text)
    if not text and not _where(query):
        raise VaultError("nothing to search for", "name a text, or a file with --file")
    table = opened.store
    allowed = table.mask(_where(query))
    window = _window(table, since, query.filters.until)
    if not text:
        return replace(_by_time(table, query, allowed, window), since=since)
    vector, why = (None, "asked for") if query.text_only else query_vector(journal, opened, text)
    narrow = allowed if window is None else window if allowed is None else window & allowed
    masks = (allowed,) if window is None else (allowed, narrow)
    found = gather(table, text, vector, masks, LIMITS)
    ranked = found.only((-(found.cosine + found.text)).argsort(kind="stable"))
    if query.min_score is None:
        query = replace(query, min_score=float("-inf") if why else MIN_SCORE)
    return replace(_results(table, query, ranked, window, since), text_only=why, since=since)


def _where(query: Query) -> str | None:
    kinds = tuple(kind for kind in query.kinds if kind in OF_JOURNAL)
    return filters.of_records(
        kinds if len(kinds) < len(OF_JOURNAL) else (),
        query.project,
        query.filters.type,
        query.concept,
        index.comparable(query.file) if query.file.strip("/") else "",
    )


def _window(table: Reader, since: datetime | None, until: datetime | None) -> np.ndarray | None:
    """Return which rows are in the window of time, bool[rows]; None for all."""
    if since is None and until is None:
        return None
    import numpy as np

    at = table.columns["at"]
    inside = np.ones(len(at), bool)
    if since is not None:
        inside &= at >= microseconds(since)
    if until is not None:
        inside &= at < microseconds(until)
    return inside


def microseconds(moment: datetime) -> int:
    """Return a time in microseconds since 1970, as the table's columns have it."""
    return int(moment.timestamp() * 1e6)


def _results(
    table: Reader,
    query: Query,
    ranked: Evidence,
    window: np.ndarray | None,
    since: datetime | None,
) -> JournalResults:
    """Make the hits of ranked rows: one for each turn, of those in the window."""
    wanted = EXPLAINED if query.explain else query.k
    every = _hits(table, ranked, window, wanted)
    words = set(re.findall(r"\w+", query.text.casefold()))

    def refuse(hit: JournalHit) -> str:
        why = below(hit.score, query.min_score)
        return why if words - set(re.findall(r"\w+", f"{hit.title} {hit.text}".casefold())) else ""

    hits, dropped = first_of(every, query.k, refuse)
    older = later = 0
    if window is not None:
        found = ranked.only(ranked.cosine + ranked.text >= (query.min_score or 0.0))
        first = found.places[_firsts_of_turns(table.columns["turn"][found.places])[: query.k]]
        outside = first[~window[first]]
        if since is not None:
            older = int((table.columns["at"][outside] < microseconds(since)).sum())
        later = len(outside) - older
    return JournalResults(hits, dropped, older=older, later=later)


def _firsts_of_turns(turns: np.ndarray) -> np.ndarray:
    """Return where each turn comes for the first time, int64[n], in order."""
    import numpy as np

    return np.sort(np.unique(turns, return_index=True)[1])


def _hits(
    table: Reader, ranked: Evidence, window: np.ndarray | None, wanted: int
) -> list[JournalHit]:
    """Return a hit for each of the first turns in the window, with what a record's first row says."""
    import numpy as np

    turns = table.columns["turn"][ranked.places]
    inside = np.arange(len(turns)) if window is None else np.flatnonzero(window[ranked.places])
    chosen = turns[inside][_firsts_of_turns(turns[inside])[:wanted]]
    listed = inside[np.isin(turns[inside], chosen)].tolist()
    row_of = dict(zip(listed, table.take(ranked.places[listed]), strict=True))
    whole = _firsts(table, list(row_of.values()))
    of_turn: dict[int, list[int]] = {}
    for at in listed:
        of_turn.setdefault(int(turns[at]), []).append(at)
    hits = []
    for several in of_turn.values():
        best = several[0]
        row = row_of[best]
        keys = dict.fromkeys((row_of[at]["path"], row_of[at]["record"]) for at in several)
        uuids = dict.fromkeys(uuid for key in keys for uuid in whole.get(key, ()))
        hit = JournalHit.of_row(row, float(ranked.cosine[best]), float(ranked.text[best]))
        hits.append(replace(hit, uuids=tuple(uuids)))
    # equal ones by id, so that the order is fixed
    return sorted(hits, key=lambda hit: (-hit.score, hit.id))


def _firsts(table: Reader, some: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], list[str]]:
    """Return the uuids of these rows' records, by path and record: the first row of each has them."""
    uuids = {(row["path"], row["record"]): row["uuids"] for row in some if row["position"] == 0}
    missing = {(row["path"], row["record"]) for row in some} - uuids.keys()
    if missing:
        where = filters.any_of("id", (f"{path}:{record}@0" for path, record in sorted(missing)))
        for row in table.rows(("path", "record", "uuids"), where):
            uuids[row["path"], row["record"]] = row["uuids"]
    return uuids


def _by_time(
    table: Reader, query: Query, allowed: np.ndarray | None, window: np.ndarray | None
) -> JournalResults:
    """List the records that a query is about, the latest first."""
    import numpy as np

    columns = table.columns
    first = (columns["position"] == 0) & (True if allowed is None else allowed)
    inside = first if window is None else first & window
    places = np.flatnonzero(inside)
    places = places[np.lexsort((-columns["place"][places], -columns["at"][places]))]
    older = int(first.sum() - inside.sum())
    shown = table.take(places[: query.k])
    return JournalResults([JournalHit.of_row(row) for row in shown], older=older)


# What happened before and after a moment: the records of the journal in the order of time.

DEEPEST = 50  # records before or after
_NO_ID = "name one as a search shows it, a time, or a text of several words"
_RECORD = re.compile(r"\S+-(?:[po]\d+(?:\.\d+)?|s)")
_SESSION = re.compile(r"[0-9a-zA-Z][\w-]{5,}")
_LIKE_SESSION = re.compile(r"(?=\D*\d)[0-9a-f]{6,}(?:-[0-9a-f]+)*")


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
        raise VaultError(
            f"a timeline shows 0 to {DEEPEST} records before and after", f"use at most {DEEPEST}"
        )
    table = open_index(journal).store
    is_id = anchor.strip().isdigit()  # and no date without its marks
    span = None if is_id else moments.span_of(anchor, now or datetime.now(UTC))
    moment = span[0] if span else None
    anchored = -1
    if moment is None:
        anchored, project = _place_of(journal, table, anchor.strip(), project, anywhere)
    if project is None:
        return Around([], None, 0)
    order = table.by_time(filters.of_records(project=project))
    place: int | None = None
    if moment is not None:
        at = table.columns["at"][order]
        middle = int(at.searchsorted(microseconds(moment)))
        chosen = order[max(0, middle - before) : middle + after]
        middle -= max(0, middle - before)
    else:
        place = int((order == anchored).argmax())
        first = max(0, place - before)
        chosen = order[first : place + after + 1]
        place = middle = place - first
    records = [JournalHit.of_row(row) for row in table.take(chosen)]
    return Around(records, place, middle)


def _place_of(
    journal: Journal, table: Reader, anchor: str, project: str | None, anywhere: bool
) -> tuple[int, str | None]:
    """Return the place of the first row of the record that an anchor names, and the project to show."""
    named_in = "" if anywhere else project or ""
    named: Sequence[int] = ()
    if _RECORD.fullmatch(anchor):
        named = table.by_time(filters.firsts_of(record=anchor, project=named_in)).tolist()
    if not named and _SESSION.fullmatch(anchor):
        named = table.by_time(filters.firsts_of(session=anchor, project=named_in)).tolist()
    if named:
        return named[0], str(table.take(named[:1])[0]["project"]) if anywhere else project
    if moments.is_time(anchor):
        raise VaultError(f"no date {anchor!r}", moments.HINT)
    if _RECORD.fullmatch(anchor) or _LIKE_SESSION.fullmatch(anchor):
        within = f" of {named_in}" if named_in else ""
        raise VaultError(f"no record or session {anchor!r} in the journal{within}", _NO_ID)
    if project is None:
        return -1, None
    hits = (
        find(journal, Query(anchor, k=1, project=project), everything=True).hits if anchor else []
    )
    if not hits:
        raise VaultError(
            f"nothing in the journal is at {anchor!r}", "name a record, a time or a text"
        )
    where = filters.firsts_of(record=hits[0].id, path=hits[0].path)
    return int(table.by_time(where)[0]), project
