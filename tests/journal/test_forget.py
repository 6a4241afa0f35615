"""What is forgotten is gone: from files, rows, vectors, and for good."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.agent_files import (
    DAY,
    bytes_below,
    files_below,
    session_id,
    turn,
    write_transcript,
)
from vault_index import config
from vault_index.errors import VaultError
from vault_index.features import JournalTable
from vault_index.journal import archive, forget, importing, index
from vault_index.journal.journal import Journal

WORD = "quokkaburrow"


@pytest.fixture
def journal(own_world: Path, monkeypatch: pytest.MonkeyPatch) -> Journal:
    monkeypatch.setenv("LESSONS_EMBEDDER", "none")
    journal = Journal(config.load())
    for name, folder in (("a", "/code/shop"), ("b", "/code/shop"), ("c", "/code/api")):
        said = f"Rename the {WORD} service" if name == "a" else f"Fix the login of {name}"
        write_transcript(
            own_world,
            name,
            turn(name, 1, said, folder, answer=f"Done: {said}."),
            turn(name, 2, f"Now the logout of {name}", folder),
        )
    importing.import_all(journal)
    index.sync(journal)
    return journal


def has(folder: Path, text: str) -> list[str]:
    return [path for path, data in bytes_below(folder).items() if text.encode() in data.lower()]


@pytest.mark.slow
def test_records_with_a_text_are_gone_and_stay_away(journal: Journal, own_world: Path) -> None:
    assert has(journal.folder, WORD)
    done = forget.forget(journal, matching=WORD.upper())
    assert done.records >= 2
    assert done.left == ()
    assert done.bytes_searched > 1000
    assert has(own_world / "journal", WORD) == has(journal.folder, WORD) == []
    (rest,) = [
        data for data in files_below(journal.folder).values() if session_id("a").encode() in data
    ]
    assert b"Now the logout of a" in rest
    copy = [
        one | {"sessionId": session_id("d")} for one in turn("a", 1, f"Rename the {WORD} service")
    ]
    write_transcript(own_world, "d", copy, turn("d", 2, "Go on"))
    write_transcript(own_world, "a", turn("a", 3, f"The {WORD} again"), mtime=int(time.time()) + 9)
    importing.import_all(journal)
    index.sync(journal)
    assert has(journal.folder, WORD) == []
    assert any(b"Go on" in data for data in files_below(journal.folder).values())


@pytest.mark.slow
def test_sessions_and_projects_are_gone(journal: Journal) -> None:
    done = forget.forget(journal, session=session_id("a")[:8])
    assert (done.sessions, done.left) == (1, ())
    assert has(journal.folder, session_id("a")) == []
    assert forget.forget(journal, project="api").sessions == 1
    assert not (journal.folder / "api").exists()
    importing.import_all(journal)
    assert len(files_below(journal.folder)) == 1
    assert forget.forget(journal, before=DAY).sessions == 0
    assert forget.forget(journal, before=f"{DAY}T23").sessions == 1
    assert files_below(journal.folder) == {}


@pytest.mark.slow
def test_sessions_are_kept_as_long_as_the_user_says(journal: Journal) -> None:
    assert forget.expire(journal).sessions == 0
    short = Journal(journal.config.having(replace(journal.config[JournalTable], retention_days=1)))
    long_ago = Journal(
        journal.config.having(replace(journal.config[JournalTable], retention_days=0))
    )
    assert forget.expire(long_ago).sessions == 0
    assert forget.expire(short).sessions == 0, "an old session was imported a moment ago"
    for file in archive.all_files(journal.folder):
        os.utime(file, (0, 0))
    assert forget.expire(short).sessions == 3
    assert files_below(journal.folder) == {}


def test_nothing_is_forgotten_unasked(journal: Journal) -> None:
    with pytest.raises(VaultError, match="nothing to forget is named"):
        forget.forget(journal)
    assert forget.forget(journal, matching="no such text").records == 0
    assert len(files_below(journal.folder)) == 3
