"""The vault in numbers: what it holds, and how many are new."""

from __future__ import annotations

from datetime import date

from tests.support.files import MakeVault
from vault_index.search import contents


def test_lessons_of_the_last_thirty_days_are_counted(
    make_vault: MakeVault, text_only: None
) -> None:
    days = ("0001-01-01", "2026-10-23", "2026-10-24", "2026-11-23", "9999-12-31", "")
    files = {f"of-{day}.md": f"---\ncreated: {day}\n---\nText of {day}.\n" for day in days}
    vault = make_vault(files, indexed=True)
    assert contents.count(vault, date(2026, 11, 23))["lately"] == 2
