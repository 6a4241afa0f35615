"""Many sessions at once are found by their words, and get their vectors later. Issue 56, item 5."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.embedders import WordEmbedder
from tests.support.journals import a_journal, keep, prompt
from vault_index.journal import index as journal_index
from vault_index.journal.journal import Journal, open_index
from vault_index.retrieval import journal as search_journal
from vault_index.retrieval.hit import Query
from vault_index.store.sync import MANY

pytestmark = pytest.mark.slow

SESSIONS = MANY + 20


@pytest.fixture
def journal(own_world: Path) -> Journal:
    """A journal of many sessions, without an index."""
    journal = a_journal(own_world)
    journal.embedder = WordEmbedder()
    for at in range(SESSIONS):
        day = f"2026-11-{1 + at % 28:02}T14:01:00.000Z"
        session = f"{at:08}"
        keep(journal, session, prompt(session, 1, f"descale kettle number{at}", day))
    return journal


def found(journal: Journal, text: str) -> tuple[list[str], str]:
    results = search_journal.find(journal, Query(text, k=3))
    return [hit.text for hit in results.hits], results.text_only


def test_sessions_are_found_by_words_and_completed(journal: Journal) -> None:
    stats = journal_index.sync(journal, completes=False)
    assert (stats.added, stats.embedded, stats.lacking) == (SESSIONS, 0, SESSIONS)
    first, why = found(journal, "kettle number7")
    assert first[0] == "descale kettle number7"
    assert why == f"the vectors of {SESSIONS} of {SESSIONS} sessions are still to be made"
    done = journal_index.complete(journal)
    assert (done.embedded, done.lacking) == (SESSIONS, 0)
    completed = found(journal, "kettle number7")
    assert completed[1] == ""
    before = vectors(journal)
    journal_index.sync(journal, rebuild=True)
    assert vectors(journal) == before  # as if they had been made at once
    assert found(journal, "kettle number7") == completed


def vectors(journal: Journal) -> dict[str, list[float]]:
    store = open_index(journal).store
    hashes = {row["content_hash"] for row in store.rows(("content_hash",))}
    return {key: vector.tolist() for key, vector in store.vectors(hashes).items()}
