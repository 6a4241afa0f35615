"""A query -> records of the journal, with the evidence for each.

The score is `cosine + 0.01 x BM25`, as for lessons, of a record's best row. A prompt and the observations
of its turn are one hit, the best of them (.82 of right answers among the first five, else .80). Recency
is a window and no decay: older records are counted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from vault_index.errors import IndexStateError, VaultError
from vault_index.features import JournalTable
from vault_index.journal import index
from vault_index.journal.journal import Journal, open_index
from vault_index.journal.record import JournalHit, JournalHits
from vault_index.retrieval.hit import OF_JOURNAL, Query, below
from vault_index.retrieval.query import query_vector, searched
from vault_index.retrieval.scoring import Evidence, gather
from vault_index.store import filters
from vault_index.store.reader import Reader

if TYPE_CHECKING:
    import numpy as np

# Of 60 questions about 37 real sessions a search finds 50 answers, and with this floor 49; of ten
# questions about no work at all it then finds nothing for nine, of 150 about other work for 27%.
MIN_SCORE = 0.35
_WORD = re.compile(r"\w+")


def find(journal: Journal, query: Query, *, everything: bool = False) -> JournalHits:
    """Search the journal, or list what touched `query.file` by time if there is no text.

    `query.filters.since` begins the window; without it that is `journal.window_days` ago, unless
    `everything` is asked for. A hit has the least score of the query, without one `MIN_SCORE`, or all of
    its words; full text alone has no floor. Raises IndexStateError without an index, VaultError for a
    query of nothing.
    """
    try:
        return _find(journal, query, everything)
    except IndexStateError:  # another index took its place meanwhile, or it is gone
        journal.opened = None
        return _find(journal, query, everything)


def _find(journal: Journal, query: Query, everything: bool) -> JournalHits:
    opened = open_index(journal)
    since = query.filters.since
    if since is None and not everything and journal.config[JournalTable].window_days:
        since = datetime.now(UTC) - timedelta(days=journal.config[JournalTable].window_days)
    text = searched(query.text)
    if not text and not _where(query):
        raise VaultError("nothing to search for", "name a text, or a file with --file")
    table = opened.store
    allowed = table.mask(_where(query))
    window = _window(table, since, query.filters.until)
    if not text:
        return _by_time(table, query, allowed, window)
    vector, why = (None, "asked for") if query.text_only else query_vector(journal, opened, text)
    found = gather(table, text, vector, allowed)
    places = found.inside.nonzero()[0]
    places = places[(-(found.cosine + found.text)[places]).argsort(kind="stable")]
    if query.min_score is None:
        query = replace(query, min_score=float("-inf") if why else MIN_SCORE)
    return replace(_results(table, query, found, places, window, since), text_only=why)


def _where(query: Query) -> str | None:
    kinds = tuple(kind for kind in query.kinds if kind in OF_JOURNAL)
    return filters.of_records(
        kinds if len(kinds) < len(OF_JOURNAL) else (),
        query.project,
        query.filters.type,
        query.concept,
        index.comparable(query.file) if query.file.strip("/") else "",
    )


def _window(table: Reader, since: datetime | None, until: datetime | None) -> np.ndarray:
    times = table.columns["at"]
    begins = -(2**63) if since is None else microseconds(since)
    ends = 2**63 - 1 if until is None else microseconds(until)
    inside: np.ndarray = (begins <= times) & (times < ends)
    return inside


def microseconds(moment: datetime) -> int:
    """Return a time in microseconds since 1970, as the table's columns have it."""
    return int(moment.timestamp() * 1e6)


def _results(
    table: Reader,
    query: Query,
    found: Evidence,
    places: np.ndarray,
    window: np.ndarray,
    since: datetime | None,
) -> JournalHits:
    """Make the hits of ranked rows: one for each turn, of those in the window."""
    words = set(_WORD.findall(query.text.casefold()))
    hits = tuple(
        hit
        for hit in _hits(table, found, places[window[places]], query.k)
        if not below(hit.score, query.min_score)
        or words.issubset(_WORD.findall(f"{hit.title} {hit.text}".casefold()))
    )
    older = 0
    if since is not None:
        places = places[(found.cosine + found.text)[places] >= (query.min_score or 0.0)]
        first = places[_firsts_of_turns(table.columns["turn"][places])[: query.k]]
        outside = first[~window[first]]
        older = int((table.columns["at"][outside] < microseconds(since)).sum())
    return JournalHits(hits, older=older)


def _firsts_of_turns(turns: np.ndarray) -> np.ndarray:
    import numpy as np

    return np.sort(np.unique(turns, return_index=True)[1])


def _hits(table: Reader, found: Evidence, places: np.ndarray, wanted: int) -> list[JournalHit]:
    """Return a hit for each of the first turns of some rows, with the data of a record's first row."""
    import numpy as np

    turns = table.columns["turn"][places]
    is_listed = np.isin(turns, turns[_firsts_of_turns(turns)[:wanted]])
    listed = places[is_listed].tolist()
    row_of = dict(zip(listed, table.take(listed), strict=True))
    whole = _firsts(table, list(row_of.values()))
    of_turn: dict[int, list[int]] = {}
    for row, turn in zip(listed, turns[is_listed].tolist(), strict=True):
        of_turn.setdefault(turn, []).append(row)
    hits = []
    for several in of_turn.values():
        best = several[0]
        keys = dict.fromkeys(row_of[row]["record"] for row in several)
        uuids = dict.fromkeys(uuid for key in keys for uuid in whole.get(key, ()))
        evidence = float(found.cosine[best]), float(found.text[best])
        hits.append(replace(JournalHit.of_row(row_of[best], *evidence), uuids=tuple(uuids)))
    # equal ones by id, so that the order is fixed
    return sorted(hits, key=lambda hit: (-hit.score, hit.id))


def _firsts(table: Reader, some: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return the uuids of these rows' records by their ids: the first row of each has them."""
    uuids = {row["record"]: row["uuids"] for row in some if row["position"] == 0}
    missing = sorted({row["record"] for row in some} - uuids.keys())
    if missing:
        where = filters.any_of("id", (f"{record}@0" for record in missing))
        found = table.rows(("record", "uuids"), where)
        uuids |= {row["record"]: row["uuids"] for row in found}
    return uuids


def _by_time(
    table: Reader, query: Query, allowed: np.ndarray | None, window: np.ndarray
) -> JournalHits:
    import numpy as np

    columns = table.columns
    first = (columns["position"] == 0) & (True if allowed is None else allowed)
    inside = first & window
    places = np.flatnonzero(inside)
    places = places[np.lexsort((-columns["place"][places], -columns["at"][places]))]
    older = int(first.sum() - inside.sum())
    rows = table.take(places[: query.k])
    return JournalHits(tuple(map(JournalHit.of_row, rows)), older=older)
