"""The vault in numbers: categories, types, and growth by week or month."""

from __future__ import annotations

from datetime import date
from itertools import pairwise

import pytest

from tests.support.files import MakeVault
from vault_index.index import reconcile
from vault_index.search import contents
from vault_index.vault import Vault, open_vault

TODAY = date(2026, 11, 23)  # a Monday


def made(make_vault: MakeVault, *days: str) -> Vault:
    """Return an indexed vault with a lesson of each of these days, "" for none."""
    files = {
        f"ops/note-{number}.md": f"---\ntitle: Note {number}\n"
        + (f"created: {day}\n" if day else "")
        + f"---\nText {number}.\n"
        for number, day in enumerate(days)
    }
    vault = open_vault(make_vault(files).root)
    reconcile.sync(vault)
    return vault


@pytest.fixture(autouse=True)
def text_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LESSONS_EMBEDDER", "none")


def test_a_young_vault_grows_by_weeks(make_vault: MakeVault) -> None:
    vault = made(make_vault, "2026-11-02", "2026-11-22", "2026-11-23", "2026-11-23", "")
    growth = contents.count(vault, TODAY)["growth"]
    assert growth["unit"] == "week"
    assert [(step["begins"], step["new"], step["all"]) for step in growth["steps"]] == [
        ("2026-11-02", 1, 1),
        ("2026-11-09", 0, 1),
        ("2026-11-16", 1, 2),
        ("2026-11-23", 2, 4),
    ]
    assert (growth["earlier"], growth["undated"]) == (0, 1)


def test_an_old_vault_grows_by_months_and_no_date_makes_it_longer_than_three_years(
    make_vault: MakeVault,
) -> None:
    vault = made(make_vault, "0001-01-01", "2026-10-31", "2026-11-01", "9999-12-31")
    growth = contents.count(vault, TODAY)["growth"]
    assert (growth["unit"], len(growth["steps"])) == ("month", contents.MAX_BARS)
    assert growth["steps"][-2:] == [
        {"begins": "2026-10-01", "new": 1, "all": 2},
        {"begins": "2026-11-01", "new": 1, "all": 3},
    ]
    assert (growth["earlier"], growth["undated"]) == (1, 1)
    assert all(early["begins"] < late["begins"] for early, late in pairwise(growth["steps"]))


def test_lessons_and_documents_are_counted_in_and_below_each_category(
    make_vault: MakeVault,
) -> None:
    sections = "## Lesson: Start\n\nHow to begin.\n\n## Lesson: End\n\nHow to end.\n"
    vault = make_vault(
        {
            "devops/docker/cache.md": "---\ntitle: Cache\ntype: bug_fix\n---\nWarm it.\n",
            "devops/handbook.md": f"---\ntitle: Handbook\n---\n{sections}",
        }
    )
    vault = open_vault(vault.root)
    reconcile.sync(vault)
    counted = contents.count(vault, TODAY)
    assert (counted["lessons"], counted["documents"]) == (3, 1)
    assert counted["categories"] == [
        {"path": "devops", "lessons": 3, "documents": 1},
        {"path": "devops/docker", "lessons": 1, "documents": 0},
    ]
    assert counted["types"][0][1] == 2
    assert ("bug_fix", 1) in [tuple(each) for each in counted["types"]]


def test_an_empty_vault_has_numbers_too(make_vault: MakeVault) -> None:
    counted = contents.count(made(make_vault), TODAY)
    assert (counted["lessons"], counted["categories"]) == (0, [])
    assert counted["growth"]["steps"] == [{"begins": "2026-11-23", "new": 0, "all": 0}]
