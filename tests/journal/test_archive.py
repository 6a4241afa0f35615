"""Sessions and records are found by their names."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.files import write
from tests.support.journals import a_journal, keep, prompt
from vault_index import state
from vault_index.entrypoints.recording import JournalStatus
from vault_index.entrypoints.wording.journal import status_lines
from vault_index.journal import archive, projects
from vault_index.journal.journal import Journal
from vault_index.journal.record import Session, short_id

CLAUDE = "11111111-0000-4000-8000-000000000000"
CODEX = "01990000-0000-7000-8000-00000000abcd"  # begins with the time


@pytest.fixture
def journal(own_world: Path) -> Journal:
    journal = a_journal(own_world)
    for id in (CLAUDE, CODEX):
        record = replace(prompt(id, 1, f"asked in {id}", ""), id=f"{short_id(id)}-p1")
        kept = Session(id, "agent", f"/{id}.jsonl", short_id(id), records=(record,))
        with state.writing(own_world) as db:
            archive.write(db, kept)
    return journal


@pytest.mark.parametrize(
    ("name", "session"),
    [
        (CLAUDE, CLAUDE),
        ("11111111", CLAUDE),
        ("11111", CLAUDE),
        ("11111111-p1", CLAUDE),
        (CODEX, CODEX),
        ("01990000-0000", CODEX),  # which is not its short name
        ("0000abcd", CODEX),
        ("0000abcd-p1", CODEX),
    ],
)
def test_a_session_is_found_by_each_of_its_names(journal: Journal, name: str, session: str) -> None:
    assert archive.find(journal, name).id == session


def test_a_journal_of_files_stays_and_is_named_until_its_sessions_are_taken_in(
    own_world: Path,
) -> None:
    before = write(own_world / "journal" / "shop" / "project.toml", "root = ''\nfolders = []\n")
    now = archive.overview(a_journal(own_world))
    assert now.before == str(before.parent.parent)
    assert any("takes the sessions in again" in line for line in status_lines(JournalStatus(now)))
    gone = hashlib.sha256(CODEX.encode()).hexdigest()[:24]
    write(own_world / "journal" / "forgotten", f"session {gone}\n")
    keep(a_journal(own_world), CLAUDE, prompt(CLAUDE, 1, "asked", ""))
    assert archive.is_forgotten(a_journal(own_world), CODEX)
    assert archive.overview(a_journal(own_world)).before == ""
    assert before.exists()


def test_proposals_of_before_stay_those_of_their_project(own_world: Path, tmp_path: Path) -> None:
    shop = tmp_path / "shop"
    shop.mkdir()
    told = f'root = ""\nfolders = ["{shop}"]\n'
    write(own_world / "proposals" / "store" / "project.toml", told)
    assert projects.project_of(own_world, str(shop)) == "store"
