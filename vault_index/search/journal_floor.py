"""The floor of the journal: the score below which no record comes to a prompt.

It is fitted as that of the lessons is: prompts that nothing answers are searched in the journal at hand.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial

from vault_index import files
from vault_index.errors import VaultError
from vault_index.hotpath import chatter
from vault_index.journal.journal import Journal
from vault_index.journal.open_index import open_index
from vault_index.search import floor
from vault_index.search.journal import find
from vault_index.store import ownership

# Of the foreign prompts' best scores. On 37 real sessions 41 of 60 questions are above it, 27 of them
# with the right record first; with .98 it is 30 and 17.
LOWEST_FULL_TEXT = 0.1  # however few records there are: two rare words in common
QUANTILE = 0.95

_FILE = "floor.json"


@dataclass(frozen=True, slots=True)
class JournalFloor:
    """The floors of the journal's index: with vectors, and for full text alone; and of how many rows."""

    vectors: float
    full_text: float
    rows: int


def in_force(journal: Journal, *, text_only: bool = False) -> float | None:
    """Return the floor of the journal's index; None if none was fitted yet: be silent until then."""
    fitted = _load(journal)
    if fitted is None:
        return None
    return fitted.full_text if text_only else fitted.vectors


def is_stale(journal: Journal) -> bool:
    """Whether the journal grew so much that its floor should be fitted again."""
    fitted = _load(journal)
    if fitted is None:
        return True
    count = open_index(journal).store.count()
    return abs(count - fitted.rows) > floor.REFIT_SHARE * max(1, fitted.rows)


def fit(
    journal: Journal, progress: Callable[[int, int], None] = lambda _done, _all: None
) -> JournalFloor:
    """Fit the floor to the index as it is, and keep it beside it. Raises WriteError, IndexStateError."""
    opened = open_index(journal)
    prompts = [prompt for prompt in floor.foreign_prompts() if not chatter.why_skipped(prompt)]
    searched = partial(find, journal, everything=True)
    scores, texts = floor.best_scores(journal, opened, prompts, searched, progress)
    fitted = JournalFloor(
        vectors=floor.quantile(scores, QUANTILE),
        full_text=max(LOWEST_FULL_TEXT, floor.quantile(texts, QUANTILE)),
        rows=opened.store.count(),
    )
    with files.writing(opened.store.index):
        files.replace_file(opened.store.index / _FILE, json.dumps(asdict(fitted)).encode())
    return fitted


def _load(journal: Journal) -> JournalFloor | None:
    try:
        text = ownership.read_text(open_index(journal).store.index / _FILE)
        return JournalFloor(**json.loads(text))
    except (OSError, ValueError, TypeError, VaultError):
        return None
