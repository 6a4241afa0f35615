"""What is forgotten is gone: from files, rows, vectors, and for good."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.support.agent_files import DAY, bytes_below, session_id, turn, write_transcript
from tests.support.journals import sessions
from vault_index import config
from vault_index.errors import VaultError
from vault_index.journal import forget, importing, index
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


def has(home: Path, text: str = WORD) -> list[str]:
    """Return the user's files, but the agent's transcripts, that have a text."""
    every = bytes_below(home).items()
    return [path for path, data in every if text.encode() in data.lower() and "claude" not in path]


@pytest.mark.slow
def test_records_with_a_text_are_gone_and_stay_away(journal: Journal, own_world: Path) -> None:
    assert has(own_world)
    done = forget.forget(journal, matching=WORD.upper())
    assert done.records >= 2
    assert done.left == ()
    assert done.bytes_searched > 1000
    assert has(own_world) == []
    rest = sessions(journal)[session_id("a")]
    assert "Now the logout of a" in [each.text for each in rest.records]
    copy = [
        one | {"sessionId": session_id("d")} for one in turn("a", 1, f"Rename the {WORD} service")
    ]
    write_transcript(own_world, "d", copy, turn("d", 2, "Go on"))
    write_transcript(own_world, "a", turn("a", 3, f"The {WORD} again"), mtime=int(time.time()) + 9)
    importing.import_all(journal)
    index.sync(journal)
    assert has(own_world) == []
    assert "Go on" in [each.text for each in sessions(journal)[session_id("d")].records]


@pytest.mark.slow
def test_sessions_and_projects_are_gone(journal: Journal, own_world: Path) -> None:
    done = forget.forget(journal, session=session_id("a")[:8])
    assert (done.sessions, done.left) == (1, ())
    assert has(own_world, session_id("a")) == []
    assert forget.forget(journal, project="api").sessions == 1
    importing.import_all(journal)
    assert [*sessions(journal)] == [session_id("b")]
    assert forget.forget(journal, before=DAY).sessions == 0
    assert forget.forget(journal, before=f"{DAY}T23").sessions == 1
    assert sessions(journal) == {}


def test_nothing_is_forgotten_unasked(journal: Journal) -> None:
    with pytest.raises(VaultError, match="nothing to forget is named"):
        forget.forget(journal)
    assert forget.forget(journal, matching="no such text").records == 0
    assert len(sessions(journal)) == 3
