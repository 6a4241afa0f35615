"""The first page of a clone: its lessons are there before an index is, and each key asks once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.files import MakeVault, lesson_text
from vault_index import api
from vault_index.entrypoints.web.vault_client import VaultClient
from vault_index.vault import open_vault


@pytest.fixture
def root(make_vault: MakeVault, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LESSONS_EMBEDDER", "none")
    monkeypatch.setenv("LESSONS_WATCH_AUTOSTART", "true")
    files = {f"devops/note-{n}.md": lesson_text(f"Note {n}", f"Text {n}.") for n in range(60)}
    text = "When the node build dies with heap out of memory, raise the heap."
    return make_vault({**files, "devops/heap.md": lesson_text("Node heap", text)}).root


@pytest.mark.slow
def test_the_lessons_of_a_clone_are_listed_before_it_has_an_index(root: Path) -> None:
    client = VaultClient(open_vault(root))
    listed = client.ask_cached(api.lesson.select(order="updated", limit=100, category=None))
    assert len(listed["entries"]) == 61
    assert client.ask_cached(api.lesson.count())["counts"] == {"devops": 61}
    assert client.index_written() == 0
