"""A timeline shows what happened before and after a record, a session, a moment or a query."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.embedders import WordEmbedder
from tests.support.journals import a_journal, keep, prompt, work
from vault_index.errors import VaultError
from vault_index.journal import index
from vault_index.journal.journal import Journal
from vault_index.retrieval.timeline import around
from vault_index.store import times

ONE = "11111111-0000-4000-8000-000000000000"
TWO = "22222222-0000-4000-8000-000000000000"


@pytest.fixture
def journal(own_world: Path) -> Journal:
    """Two sessions, the second in the middle of the first."""
    journal = a_journal(own_world, WordEmbedder())
    at = "2026-11-20T{}:00:00.000Z".format
    keep(
        journal,
        ONE,
        prompt(ONE, 1, "keep the query", at(10)),
        work(ONE, 1, "It is kept. " + "And that is why. " * 150, at(10)),
        prompt(ONE, 2, "deploy it", at(14)),
    )
    keep(journal, TWO, prompt(TWO, 1, "retry uploads", at(12)), project="files")
    index.sync(journal)
    return journal


def test_kinds_are_mixed_in_order_of_time_and_grouped_by_session(journal: Journal) -> None:
    shown = around(journal, "22222222-p1")
    assert [(record.session, record.id) for record in shown.records] == [
        (ONE, "11111111-p1"),
        (ONE, "11111111-o1.1"),
        (TWO, "22222222-p1"),
        (ONE, "11111111-p2"),
    ]
    assert (shown.anchor, shown.before) == ("22222222-p1", 2)


@pytest.mark.parametrize(
    ("anchor", "expected"),
    [
        ("11111111-p2", ["22222222-p1", "11111111-p2"]),
        ("11111111", ["11111111-p1", "11111111-o1.1"]),
        ("22222222", ["11111111-o1.1", "22222222-p1", "11111111-p2"]),
        (TWO, ["11111111-o1.1", "22222222-p1", "11111111-p2"]),
        ("retry the uploads", ["11111111-o1.1", "22222222-p1", "11111111-p2"]),
        ("2026-11-20T11:00:00Z", ["11111111-o1.1", "22222222-p1"]),
        ("2026-11-19T11:00:00Z", ["11111111-p1"]),
    ],
)
def test_an_anchor_is_a_record_a_session_a_moment_or_a_query(
    journal: Journal, anchor: str, expected: list[str]
) -> None:
    assert [record.id for record in around(journal, anchor, 1, 1).records] == expected


def test_a_project_narrows_it(journal: Journal) -> None:
    shown = around(journal, "11111111-p1", project="shop")
    assert [record.id for record in shown.records] == [
        "11111111-p1",
        "11111111-o1.1",
        "11111111-p2",
    ]


def test_a_depth_beyond_fifty_and_an_anchor_of_nothing_are_refused(journal: Journal) -> None:
    with pytest.raises(VaultError, match="0 to 50"):
        around(journal, "11111111-p1", before=51)
    with pytest.raises(VaultError, match="nothing in the journal"):
        around(journal, "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2 days ago", datetime(2026, 11, 20, 12, tzinfo=UTC)),
        ("2d", datetime(2026, 11, 20, 12, tzinfo=UTC)),
        ("2026-11-20T14:00:00Z", datetime(2026, 11, 20, 14, tzinfo=UTC)),
        ("what did we decide", None),
        ("yesterday 99:00", None),
        ("0001-01-01", None),
        ("99999999999 days ago", None),
    ],
)
def test_moments(text: str, expected: datetime | None) -> None:
    span = times.span_of(text, datetime(2026, 11, 22, 12, tzinfo=UTC))
    assert (span[0] if span else None) == expected


@given(st.text())
def test_no_text_breaks_a_moment(text: str) -> None:
    times.span_of(text, datetime.now(UTC))
    times.is_time(text)


@pytest.mark.parametrize(
    ("text", "begins", "ends"),  # days of November; the clock shows Sunday 22
    [
        ("today", 22, 23),
        ("Yesterday", 21, 22),
        ("last tuesday", 17, 18),
        ("sunday", 15, 16),
        ("this week", 16, 23),
        ("last week", 9, 16),
        ("2026-11-20", 20, 21),
    ],
)
def test_a_day_or_a_week_is_known_by_its_words(text: str, begins: int, ends: int) -> None:
    now = datetime(2026, 11, 22, 12).astimezone()  # of the clock on the wall
    span = times.span_of(text, now)
    assert span is not None
    assert [moment.astimezone().day for moment in span] == [begins, ends]
    assert {moment.astimezone().hour for moment in span} == {0}


@pytest.mark.parametrize("text", ["next friday", "3 months ago", "tomorrow morning", "9am today"])
def test_words_of_a_time_that_nobody_understands_are_an_error_everywhere(
    journal: Journal, text: str
) -> None:
    with pytest.raises(VaultError, match=f"no date '{text}'"):
        around(journal, text)
    with pytest.raises(VaultError, match=f"no date '{text}'"):
        times.since(text)
