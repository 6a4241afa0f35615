"""The journal is searched by meaning, by words, by file, by concept, by kind and in a window of time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support.embedders import WordEmbedder
from tests.support.journals import a_journal, keep, prompt, work
from vault_index.journal import index
from vault_index.journal.journal import Journal
from vault_index.journal.record import JournalHits
from vault_index.retrieval import journal as search
from vault_index.retrieval.hit import Query
from vault_index.store.filters import Filter

LOGIN = "11111111-0000-4000-8000-000000000000"
UPLOAD = "22222222-0000-4000-8000-000000000000"
OLD = "33333333-0000-4000-8000-000000000000"


def days_ago(days: float) -> str:
    return (datetime.now(UTC) - timedelta(days=days)).isoformat()


@pytest.fixture
def journal(own_world: Path) -> Journal:
    journal = a_journal(own_world, WordEmbedder())
    keep(
        journal,
        LOGIN,
        prompt(LOGIN, 1, "keep the query when the login redirects", days_ago(2)),
        work(
            LOGIN,
            1,
            "The redirect of the login keeps the query now.",
            days_ago(1.9),
            type="bugfix",
            concepts=("problem-solution",),
            files_modified=("src/web/Login.py",),
            files_read=("store/table.py",),
        ),
        prompt(LOGIN, 2, "now deploy it", days_ago(1)),
    )
    keep(
        journal,
        UPLOAD,
        prompt(UPLOAD, 1, "retry the upload three times", days_ago(5)),
        work(UPLOAD, 1, "Uploads retry.", days_ago(5), files_modified=("store/queue.py",)),
        project="files",
    )
    keep(journal, OLD, prompt(OLD, 1, "does the login redirect at all", days_ago(200)))
    index.sync(journal)
    return journal


def ids(results: JournalHits) -> list[str]:
    return [hit.id for hit in results.hits]


def test_a_turn_is_one_hit_with_the_uuids_of_its_records(journal: Journal) -> None:
    hits = search.find(journal, Query("query of the login redirect")).hits
    assert [hit.id for hit in hits if hit.session == LOGIN and hit.number == 1] == [hits[0].id]
    assert set(hits[0].uuids) == {f"{LOGIN}-1", f"{LOGIN}-1-answer"}
    assert hits[0].score == pytest.approx(hits[0].cosine + hits[0].full_text)


def test_a_hit_has_the_documented_keys(journal: Journal) -> None:
    hit = search.find(journal, Query("uploads retry", kinds=("observation",))).hits[0]
    assert list(hit.as_json()) == [
        *("id", "kind", "session", "project", "branch", "at", "number", "title", "text", "type"),
        *("concepts", "files", "uuids", "score", "by_words"),
    ]
    assert hit.as_json()["files"] == ("store/queue.py",)
    assert hit.as_json(explain=True).keys() - hit.as_json().keys() == {"cosine", "full_text"}


def test_what_is_not_near_enough_is_no_hit_unless_it_has_all_words(journal: Journal) -> None:
    assert ids(search.find(journal, Query("rye bread"))) == []
    everything = search.find(journal, Query("rye bread", min_score=-1.0))
    assert everything.hits
    lowest = search.find(journal, Query("now"), everything=True).hits
    assert {hit.id for hit in lowest} == {"11111111-o1.1", "11111111-p2"}
    assert search.find(journal, Query("rye bread", k=2)).older == 0


def test_what_lies_outside_the_window_is_counted(journal: Journal) -> None:
    results = search.find(journal, Query("login redirect", k=2))
    assert all(hit.session != OLD for hit in results.hits)
    assert results.older == 1
    everything = search.find(journal, Query("login redirect", k=2), everything=True)
    assert OLD in [hit.session for hit in everything.hits]
    assert everything.older == 0


@pytest.mark.parametrize(
    ("narrowed", "expected"),
    [
        ({"kinds": ("prompt",)}, {"11111111-p1", "11111111-p2", "22222222-p1"}),
        ({"project": "files"}, {"22222222-p1", "22222222-o1.1"}),
        ({"concept": "problem-solution"}, {"11111111-o1.1"}),
        ({"filters": Filter(type="bugfix")}, {"11111111-o1.1"}),
        ({"file": "login.py"}, {"11111111-o1.1"}),
        ({"file": "web/login.py"}, {"11111111-o1.1"}),
        ({"file": "src/web"}, {"11111111-o1.1"}),
        ({"file": "/code/shop/src/web/Login.py"}, {"11111111-o1.1"}),
        ({"file": "store/"}, {"11111111-o1.1", "22222222-o1.1"}),
        ({"file": "ogin.py"}, set()),
    ],
)
def test_a_search_is_narrowed_before_it_is_made(
    journal: Journal, narrowed: dict[str, Any], expected: set[str]
) -> None:
    options: dict[str, Any] = {"text": "login redirect", "k": 9, "min_score": -1.0, **narrowed}
    hits = search.find(journal, Query(**options)).hits
    assert {hit.id for hit in hits} <= expected
    assert bool(hits) == bool(expected)


def test_without_vectors_full_text_answers(journal: Journal, own_world: Path) -> None:
    without = a_journal(own_world)
    results = search.find(without, Query("upload three times"))
    assert results.text_only
    assert ids(results)[0] == "22222222-p1"
