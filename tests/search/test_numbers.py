"""The vault in numbers: categories, types, and growth by day."""

from __future__ import annotations

from datetime import date

import pytest

from tests.support.files import MakeVault, lesson_text
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


def test_a_vault_grows_by_days(make_vault: MakeVault) -> None:
    vault = made(make_vault, "2026-11-02", "2026-11-22", "2026-11-22", "2026-11-05", "")
    growth = contents.count(vault, TODAY)["growth"]
    assert [(each["day"], each["new"], each["all"]) for each in growth["days"]] == [
        ("2026-11-02", 1, 1),
        ("2026-11-05", 1, 2),
        ("2026-11-22", 2, 4),
        ("2026-11-23", 0, 4),
    ]
    assert growth["undated"] == 1


def test_no_date_makes_the_growth_longer_than_three_years(make_vault: MakeVault) -> None:
    vault = made(make_vault, "0001-01-01", "2026-10-31", "2026-11-23", "9999-12-31")
    growth = contents.count(vault, TODAY)["growth"]
    assert [(each["day"], each["new"], each["all"]) for each in growth["days"]] == [
        ("2023-11-24", 0, 1),
        ("2026-10-31", 1, 2),
        ("2026-11-23", 1, 3),
    ]
    assert growth["undated"] == 1


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
    assert counted["growth"]["days"] == [{"day": "2026-11-23", "new": 0, "all": 0}]


def test_the_numbers_count_the_documents_that_are_listed(make_vault: MakeVault) -> None:
    long = lesson_text("Long", "A sentence of some words. " * 400)
    vault = make_vault({"devops/long.md": long, "short.md": lesson_text("Short", "A word.")})
    reconcile.sync(vault)
    assert contents.count(vault, TODAY)["documents"] == len(contents.counted(vault))
