"""The journal's index is a cache of its sessions: it follows them, whatever happens to it."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.embedders import FailingEmbedder, WordEmbedder
from tests.support.journals import a_journal, drop, keep, prompt, work
from vault_index import state
from vault_index.errors import EmbedderError, IndexStateError
from vault_index.journal import index
from vault_index.journal.journal import Journal, open_index
from vault_index.store import manifest

pytestmark = pytest.mark.slow

AT = "2026-11-20T14:0{}:00.000Z"
FIRST, SECOND, THIRD = (f"{digit * 8}-0000-4000-8000-000000000000" for digit in "123")


def contents(journal: Journal) -> list[tuple[str, str, str]]:
    columns = ("id", "text", "content_hash")
    found = open_index(journal).store.rows(columns)
    return sorted((row["id"], row["text"], row["content_hash"]) for row in found)


def made_anew(journal: Journal, home: Path) -> list[tuple[str, str, str]]:
    """Return what an index has that is made of the sessions alone."""
    home.mkdir()
    other = a_journal(home, WordEmbedder())
    with sqlite3.connect(journal.home / state.FILE) as db:
        db.execute("VACUUM INTO ?", [str(home / state.FILE)])
    index.sync(other)
    return contents(other)


def test_the_index_follows_the_sessions(own_world: Path, tmp_path: Path) -> None:
    journal = a_journal(own_world, words := WordEmbedder())
    keep(journal, FIRST, prompt(FIRST, 1, "keep the query of the redirect", AT.format(1)))
    gone = keep(journal, SECOND, prompt(SECOND, 1, "retry the upload", AT.format(2)))
    assert index.sync(journal).added == 2
    keep(journal, FIRST, prompt(FIRST, 1, "keep the fragment of the redirect", AT.format(1)))
    drop(journal, gone)
    keep(journal, THIRD, prompt(THIRD, 1, "name the branch", AT.format(3)), project="other")
    words.documents.clear()
    stats = index.sync(journal)
    assert (stats.added, stats.changed, stats.removed) == (1, 1, 1)
    assert sorted(words.documents) == ["keep the fragment of the redirect", "name the branch"]
    assert contents(journal) == made_anew(journal, tmp_path / "other")
    assert not index.sync(journal).wrote


def test_a_session_that_goes_on_writes_only_what_is_new(own_world: Path) -> None:
    journal = a_journal(own_world, WordEmbedder())
    first = prompt(FIRST, 1, "keep the query", AT.format(1), context="Shall I keep it?")
    did = work(FIRST, 1, "The query is kept.", AT.format(1), facts=("It has a test.", "It is new."))
    keep(journal, FIRST, first, did)
    index.sync(journal)
    before = {id for id, *_ in contents(journal)}
    keep(
        journal,
        FIRST,
        first,
        replace(did, facts=did.facts[:1]),
        prompt(FIRST, 2, "x", AT.format(2)),
    )
    stats = index.sync(journal)
    after = {id for id, *_ in contents(journal)}
    assert (stats.changed, stats.rows) == (1, 1)
    assert before - after == {"11111111-o1.1@2"}
    assert after - before == {"11111111-p2@0"}


def test_a_kill_between_rows_and_manifest_is_repaired(
    own_world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows are in the table, and the manifest does not know of them: the session is put back."""
    journal = a_journal(own_world, WordEmbedder())
    before = prompt(FIRST, 1, "keep the query", AT.format(1))
    keep(journal, FIRST, before)
    index.sync(journal)
    keep(journal, FIRST, prompt(FIRST, 1, "something else", AT.format(1)))
    with monkeypatch.context() as patch:
        patch.setattr(manifest, "save", _killed)
        with pytest.raises(KeyboardInterrupt):
            index.sync(journal)
    keep(journal, FIRST, before)
    index.sync(journal)
    assert contents(journal) == made_anew(journal, tmp_path / "other")


def _killed(*_args: Any, **_options: Any) -> None:
    raise KeyboardInterrupt


def test_an_interrupted_first_index_goes_on(
    own_world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "BATCH_ROWS", 2)
    journal = a_journal(own_world, FailingEmbedder(calls=2))
    for number in range(5):
        session = f"{number}" * 8
        keep(journal, session, *(prompt(session, n, f"{number} {n}", AT.format(n)) for n in (1, 2)))
    with pytest.raises(EmbedderError):
        index.sync(journal)
    with pytest.raises(IndexStateError):
        open_index(journal)  # nobody sees half of one
    again = a_journal(own_world, words := WordEmbedder())
    index.sync(again)
    assert len(contents(again)) == 10
    assert len(words.documents) == 6


def raw_bytes(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())


def test_what_is_removed_is_in_no_byte_of_the_index(own_world: Path) -> None:
    journal = a_journal(own_world, words := WordEmbedder())
    secret = "the xylophone is under the stairs"
    gone = keep(journal, FIRST, prompt(FIRST, 1, secret, AT.format(1)))
    keep(journal, SECOND, prompt(SECOND, 1, "retry the upload", AT.format(2)))
    index.sync(journal)
    keep(journal, SECOND, prompt(SECOND, 1, "retry the upload twice", AT.format(2)))
    index.sync(journal)  # an old version of the table has all of it
    vector = words.embed_queries([secret])[0].astype("<f4").tobytes()
    assert b"xylophone" in raw_bytes(journal.folder)
    assert vector in raw_bytes(own_world)
    drop(journal, gone)
    words.documents.clear()
    index.remove(journal, [FIRST])
    assert b"xylophone" not in raw_bytes(journal.folder)
    assert vector not in raw_bytes(own_world)
    assert words.documents == []  # the others are not embedded again
    assert [text for _, text, _ in contents(journal)] == ["retry the upload twice"]
