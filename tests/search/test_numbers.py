"""The vault in numbers: what it holds, and how many are new."""

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


def test_lessons_of_the_last_thirty_days_are_counted(make_vault: MakeVault) -> None:
    days = ("0001-01-01", "2026-10-23", "2026-10-24", "2026-11-23", "9999-12-31", "")
    assert contents.count(made(make_vault, *days), TODAY)["lately"] == 2


def test_only_what_has_several_passages_counts_as_a_document(make_vault: MakeVault) -> None:
    long = lesson_text("Long", "A sentence of some words. " * 400)
    vault = make_vault({"devops/long.md": long, "short.md": lesson_text("Short", "A word.")})
    reconcile.sync(vault)
    assert contents.count(vault, TODAY)["documents"] == 1
