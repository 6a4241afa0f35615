"""Records of decisions come in with their names, links and dates (issue 55, row 11)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import run
from tests.support.files import MakeVault, commit, lesson_text, write
from vault_index.edit import import_lessons, links
from vault_index.index import reconcile
from vault_index.lesson import parse
from vault_index.vault import Vault

pytestmark = pytest.mark.slow

FIRST = """\
# 1. Record architecture decisions

Date: 2017-02-12

## Status

Superseded by [2. Use Postgres](0002-use-postgres.md)

## Decision

We keep one file for each decision about the harbour software.
"""
SECOND = """\
# 2. Use Postgres

* Status: accepted
* **Date:** 2018/03/04

Supersedes [the first](0001-record-architecture-decisions.md#status), and
see [the design](../design.md "how"), `[not](a-link.md)`, [elsewhere](https://example.org/x.md).

The berth table outgrew the spreadsheet, so the schedule of the cranes is in Postgres.
"""


@pytest.fixture
def vault(make_vault: MakeVault, text_only: None) -> Vault:
    return make_vault({"other.md": lesson_text("Other", "Text of another one.")}, indexed=True)


@pytest.fixture
def records(vault: Vault) -> Path:
    folder = vault.root / "docs/adr"
    write(folder / "0001-record-architecture-decisions.md", FIRST)
    write(folder / "0002-use-postgres.md", SECOND)
    write(vault.root / "docs/design.md", "# Design\n")
    return folder


def brought_in(vault: Vault, source: Path, **how: Any) -> dict[str, str]:
    """Import, and return what was written or updated."""
    planned = import_lessons.plan(vault, source, **how)
    assert planned.problems == ()
    import_lessons.apply(vault, planned)
    reconcile.sync(vault)
    return {item.path: item.data.decode() for item in planned.to_write}


def created(path: str, text: str) -> str:
    (first, *_) = parse.parse_file(text.encode(), path)
    return f"{first.created:%Y-%m-%d}" if first.created else ""


def test_records_keep_names_links_and_dates(vault: Vault, records: Path) -> None:
    texts = brought_in(vault, records, category="architecture")
    first = "architecture/0001-record-architecture-decisions.md"
    second = "architecture/0002-use-postgres.md"
    assert sorted(texts) == [first, second]
    assert created(first, texts[first]) == "2017-02-12"
    assert created(second, texts[second]) == "2018-03-04"
    assert "(0002-use-postgres.md)" in texts[first]
    assert "(0001-record-architecture-decisions.md#status)" in texts[second]
    assert '[the design](../../docs/design.md "how")' in texts[second]
    assert "`[not](a-link.md)`, [elsewhere](https://example.org/x.md)" in texts[second]
    assert "dead-link" not in run("lessons", "check", cwd=vault.root).out


def test_a_link_follows_a_name_that_has_to_change(vault: Vault, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    write(notes / "My deploy notes.md", "# Deploys need the VPN\n\nSee [it](sub/The%20Heap.md).\n")
    heap = "# Raise the heap\n\nOf the build: [vpn][v].\n\n[v]: ../My%20deploy%20notes.md\n"
    write(notes / "sub/The Heap.md", heap)
    texts = brought_in(vault, notes)
    assert "See [it](../sub/raise-the-heap.md)." in texts["inbox/deploys-need-the-vpn.md"]
    assert "[v]: ../inbox/deploys-need-the-vpn.md\n" in texts["sub/raise-the-heap.md"]
    assert "dead-link" not in run("lessons", "check", cwd=vault.root).out


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("0001-x.md", "0001-x"),
        ("ADR-007-Use-Kafka.md", "ADR-007-Use-Kafka"),
        ("adr_12_cranes.md", "adr_12_cranes"),
        ("rfc-0042.tides.md", "rfc-0042.tides"),
        ("2024-05-01-outage.md", "the-pier"),  # a day is no number of a record
        ("notes on the pier.md", "the-pier"),
        ("12-factors.md", "the-pier"),
    ],
)
def test_the_name_of_a_record_is_kept_and_no_other(
    vault: Vault, tmp_path: Path, name: str, kept: str
) -> None:
    source = write(tmp_path / name, "# The pier\n\nIt needs new planks each spring.\n")
    assert list(brought_in(vault, source)) == [f"inbox/{kept}.md"]


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("---\ndate: 2024-01-02\n---\n# A\n\nText of it.\n", "2024-01-02"),
        ("---\ncreated: 2020-01-01\ndate: 2024-01-02\n---\n# A\n\nText of it.\n", "2020-01-01"),
        ("# A\n\n| Date | 2021-03-04 |\n\nText of it.\n", "2021-03-04"),
        ("# A\n\n**Date**: 2021-03-04\n\nText of it.\n", "2021-03-04"),
        ("# A\n\nDecided on: 2021-03-04\n\nText of it.\n", "2021-03-04"),
        ("# A\n\nDate: 2021-13-44\n\nText of it.\n", ""),
        ("# A\n\nDate: {YYYY-MM-DD}\n\nText of it.\n", ""),
        ("# A\n\nText.\n\n```\nDate: 2014-07-22\n```\n", ""),
        ("# A\n\nUpdate: 2014-07-22 was a bad day.\n", ""),
        ("# A\n" + "\nText of it.\n" * 20 + "\nDate: 2014-07-22\n", ""),
    ],
)
def test_the_day_in_the_first_lines_is_created(
    vault: Vault, tmp_path: Path, text: str, day: str
) -> None:
    ((path, data),) = brought_in(vault, write(tmp_path / "0001-a.md", text)).items()
    assert created(path, data) == day


def test_an_update_of_what_nobody_touched_needs_no_commit(vault: Vault, records: Path) -> None:
    brought_in(vault, records)
    assert brought_in(vault, records, update=True) == {}
    source = records / "0002-use-postgres.md"
    for text in ("outgrew the paper", "outgrew the sheet"):  # an update is an import, too
        write(source, SECOND.replace("outgrew the spreadsheet", text))
        (new,) = brought_in(vault, records, update=True).values()
        assert text in new
    file = vault.lessons_dir / "inbox/0002-use-postgres.md"
    file.write_bytes(file.read_bytes() + b"Mine.\n")
    write(source, SECOND)
    (item,) = [
        each
        for each in import_lessons.plan(vault, records, update=True).items
        if each.path.endswith("0002-use-postgres.md")
    ]
    assert (item.verdict, item.why) == ("refused", "commit the file, then update it")
    commit(vault.root)
    assert "spreadsheet" in next(iter(brought_in(vault, records, update=True).values()))


def test_an_update_finds_moved_records_and_links_lead_to_them(vault: Vault, records: Path) -> None:
    brought_in(vault, records)
    moved = vault.lessons_dir / "db/0002-use-postgres.md"
    (vault.lessons_dir / "inbox/0002-use-postgres.md").rename(write(moved, ""))
    reconcile.sync(vault)
    texts = brought_in(vault, records, update=True)
    assert "(../db/0002-use-postgres.md)" in texts["inbox/0001-record-architecture-decisions.md"]
    assert (
        "(../inbox/0001-record-architecture-decisions.md#status)"
        in texts["db/0002-use-postgres.md"]
    )


def test_a_lost_memory_asks_for_a_commit(vault: Vault, records: Path, own_world: Path) -> None:
    brought_in(vault, records)
    for file in own_world.glob("state.sqlite*"):
        file.unlink()
    write(records / "0002-use-postgres.md", SECOND.replace("spreadsheet", "paper"))
    whys = [item.why for item in import_lessons.plan(vault, records, update=True).items]
    assert "commit the file, then update it" in whys


def test_a_link_out_of_another_repository_is_left(tmp_path: Path, vault: Vault) -> None:
    other = tmp_path / "other"
    run("git", "init", "-q", other, cwd=tmp_path)
    old = write(other / "docs/0001-a.md", "[x](../README.md), [y](/README.md), [z](gone.md)\n")
    write(other / "README.md", "# Other\n")
    new = vault.lessons_dir / "inbox/0001-a.md"
    assert links.moved(old.read_bytes(), old, new, {}) == old.read_bytes()
