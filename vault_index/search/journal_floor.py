"""When the journal is silent at a prompt: a floor of its own, fitted as that of the lessons is.

The prompts that no lesson answers are searched for in the whole journal, and a high quantile of their
best scores is the floor. Only who wants records at prompts (`journal.prompt`) needs it.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from vault_index import files
from vault_index.errors import VaultError
from vault_index.hotpath import chatter
from vault_index.journal import index
from vault_index.journal.journal import Journal
from vault_index.search.floor import QUANTILE, REFIT_SHARE, foreign_prompts, quantile
from vault_index.search.journal import find
from vault_index.search.options import OF_JOURNAL, Query
from vault_index.store import ownership

_FILE = "floor.json"


@dataclass(frozen=True, slots=True)
class JournalFloor:
    """The floors of the journal's index: with vectors, and of full text alone; of so many sessions."""

    vectors: float
    full_text: float
    sessions: int


def in_force(journal: Journal, *, text_only: bool = False) -> float | None:
    """Return the fitted floor; None if none was fitted to the index yet."""
    fitted = _load(journal)
    if fitted is None:
        return None
    return fitted.full_text if text_only else fitted.vectors


def is_stale(journal: Journal) -> bool:
    """Whether the index changed so much that the floor should be fitted again. Raises IndexStateError."""
    sessions = index.open_table(journal).sessions
    fitted = _load(journal)
    return fitted is None or abs(sessions - fitted.sessions) > REFIT_SHARE * max(1, fitted.sessions)


def fit(journal: Journal) -> JournalFloor:
    """Fit the floor to the index as it is, and keep it beside it. Raises WriteError, IndexStateError."""
    opened = index.open_table(journal)
    scores: list[float] = []
    texts: list[float] = []
    for prompt in foreign_prompts():
        if not chatter.why_skipped(prompt):
            scores.append(_best(journal, Query(prompt, k=1, kinds=OF_JOURNAL)))
            texts.append(_best(journal, Query(prompt, k=1, kinds=OF_JOURNAL, text_only=True)))
    fitted = JournalFloor(quantile(scores, QUANTILE), quantile(texts, QUANTILE), opened.sessions)
    with files.writing(opened.store.index):
        files.replace_file(opened.store.index / _FILE, json.dumps(asdict(fitted)).encode())
    return fitted


def _best(journal: Journal, query: Query) -> float:
    hits = find(journal, query, everything=True).hits
    return hits[0].score if hits else 0.0


def _load(journal: Journal) -> JournalFloor | None:
    try:
        place = index.open_table(journal).store.index / _FILE
        return JournalFloor(**json.loads(ownership.read_text(place)))
    except (OSError, ValueError, TypeError, VaultError):
        return None
