"""When the index is built again, and what an interruption leaves: nothing that is not the files."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.support.commands import BIN, run
from tests.support.embedders import WordEmbedder
from tests.support.files import MakeVault, lesson_text, write
from tests.support.indexed import HEAP, LOCK, PIPE, assert_same_as_a_rebuild, ids, later, with_words
from vault_index.errors import WriteError
from vault_index.index import reconcile
from vault_index.retrieval import entries, query
from vault_index.store import manifest, ownership
from vault_index.store.lance import Table
from vault_index.store.sync import REBUILD_LOCK, Stats
from vault_index.vault import Vault, open_vault

pytestmark = pytest.mark.slow

# when everything has to be built again


def test_another_embedder_rebuilds(make_vault: MakeVault) -> None:
    vault = make_vault({"a.md": HEAP}, words=True, indexed=True)
    with_words(vault, WordEmbedder("other", 32))
    stats = reconcile.sync(vault)
    assert stats.rebuilt == "the index was built with words, now it is other"
    assert vault.open_index().embedder == "other"
    assert query.find(vault, "heap")[0].lesson_id == "a"


def test_a_rebuild_swaps_and_readers_go_on(make_vault: MakeVault) -> None:
    vault = make_vault({"a.md": HEAP}, words=True, indexed=True)
    reader = vault.open_index()
    assert reconcile.rebuild(vault).rebuilt == "asked for"
    assert reader.store.count() == 1  # the old folder stands until nobody can stand on it
    assert vault.open_index().store.index != reader.store.index


class SavingEmbedder(WordEmbedder):
    """Has lessons saved and indexed while it embeds the lessons of a rebuild."""

    def __init__(self, vault: Vault) -> None:
        super().__init__()
        self.vault = open_vault(vault.root)
        with_words(self.vault)
        self.saved: list[Stats] = []

    def embed_documents(self, texts: Sequence[str]) -> np.ndarray:
        if not self.saved:
            write(self.vault.lessons_dir / "b.md", LOCK)
            (self.vault.lessons_dir / "c.md").unlink()
            self.saved.append(reconcile.at_once(self.vault, full=False))
            assert ids(self.vault) == ["a", "b"]
            assert query.find(self.vault, "migrations wait for a lock")[0].lesson_id == "b"
        return super().embed_documents(texts)


def test_a_save_does_not_wait_for_a_rebuild_and_is_in_it(make_vault: MakeVault) -> None:
    """Issue 56, the row of `--rebuild`: it embedded while it held the writer's lock."""
    vault = make_vault({"a.md": HEAP, "c.md": PIPE}, words=True, indexed=True)
    before = manifest.current(vault.index_dir)
    saving = SavingEmbedder(vault)
    with_words(vault, saving)
    assert reconcile.rebuild(vault).rebuilt == "asked for"
    assert [(stats.busy, stats.added, stats.removed) for stats in saving.saved] == [(False, 1, 1)]
    assert manifest.current(vault.index_dir) != before
    assert {each.id for each in entries.entries(vault)} == {"a", "b"}
    assert_same_as_a_rebuild(vault)


def test_a_rebuild_that_is_stopped_leaves_the_index_in_force(make_vault: MakeVault) -> None:
    vault = make_vault({"a.md": HEAP, "b.md": LOCK}, words=True, indexed=True)
    before = manifest.current(vault.index_dir)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest, "put_in_force", stopped)
        with pytest.raises(KeyboardInterrupt):
            reconcile.rebuild(vault)
    assert manifest.current(vault.index_dir) == before
    assert reconcile.sync(vault).unchanged == 2
    assert_same_as_a_rebuild(vault)
    assert not (vault.index_dir / manifest.REBUILDING).exists()


def stopped(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


def test_two_rebuilds_do_not_build_in_one_folder(make_vault: MakeVault) -> None:
    vault = make_vault({"a.md": HEAP}, words=True, indexed=True)
    with ownership.held(vault.index_dir, wait=False, name=REBUILD_LOCK):
        assert reconcile.rebuild(vault, wait=False).busy
        assert not reconcile.sync(vault, wait=False).busy
    with ownership.held(vault.index_dir, wait=False):
        assert reconcile.rebuild(vault, wait=False).busy


# interruptions


def many_passages(lessons: int) -> dict[str, str]:
    """Return files of lessons with some 40 passages each."""
    return {
        f"{number:02}.md": lesson_text(
            f"Lesson {number}", "\n\n".join(f"Paragraph {number}-{n}. " * 30 for n in range(60))
        )
        for number in range(lessons)
    }


def test_an_interrupted_build_goes_on_where_it_was(
    make_vault: MakeVault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconcile, "BATCH_PASSAGES", 160)
    vault = make_vault(many_passages(8), words=True)
    write, batches = Table.replace, []

    def stopped_at_the_second(table: Table, rows: Any, stale: Any) -> None:
        batches.append(len(rows))
        if len(batches) == 2:
            raise KeyboardInterrupt
        write(table, rows, stale)

    with monkeypatch.context() as patch:
        patch.setattr(Table, "replace", stopped_at_the_second)
        with pytest.raises(KeyboardInterrupt):
            reconcile.sync(vault)
    assert manifest.current(vault.index_dir) is None  # half an index is not in force

    stats = reconcile.sync(vault)
    assert stats.rebuilt == "first index"
    assert stats.added + stats.unchanged == 8
    assert stats.unchanged >= 4
    assert_same_as_a_rebuild(vault)


@pytest.mark.parametrize("then", ["deleted", "put back", "moved"])
def test_stopped_between_rows_and_manifest(make_vault: MakeVault, then: str) -> None:
    """A kill there leaves no rows that nobody knows of, and none that are not the file's."""
    vault = make_vault({"a.md": HEAP, "gone.md": PIPE}, words=True)
    later(vault.lessons_dir / "a.md")
    later(vault.lessons_dir / "gone.md")
    reconcile.sync(vault)
    note = vault.open_index().store.index / "manifest.json"
    kept = write(vault.root / "kept", b"")
    shutil.copy2(vault.lessons_dir / "a.md", kept)

    def disk_refuses_the_manifest(_done: int, _all: int) -> None:
        note.rename(vault.root / "manifest-then")
        note.mkdir()

    write(vault.lessons_dir / "a.md", LOCK)
    write(vault.lessons_dir / "new.md", lesson_text("New", "Not there for long."))
    (vault.lessons_dir / "gone.md").rename(vault.root / "gone.md")
    with pytest.raises(WriteError):
        reconcile.sync(vault, progress=disk_refuses_the_manifest)
    note.rmdir()
    (vault.root / "manifest-then").rename(note)

    if then == "deleted":
        (vault.lessons_dir / "new.md").unlink()
    elif then == "put back":
        shutil.copy2(kept, vault.lessons_dir / "a.md")
        (vault.root / "gone.md").rename(vault.lessons_dir / "gone.md")
    else:
        (vault.lessons_dir / "new.md").rename(vault.lessons_dir / "moved.md")
    reconcile.sync(vault)
    assert_same_as_a_rebuild(vault)


def test_kill_during_index(make_vault: MakeVault) -> None:
    vault = make_vault(many_passages(12))
    chance = random.Random(7)
    for turn in range(6):
        child = subprocess.Popen(
            [BIN / "lessons", "index", *(["--rebuild"] if turn % 2 else [])],
            cwd=vault.root,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(chance.uniform(0.5, 2.2))
        child.send_signal(signal.SIGKILL)
        child.wait()
        if manifest.current(vault.index_dir):
            assert query.find(open_vault(vault.root), "paragraph", k=3)
        write(vault.lessons_dir / f"{turn:02}.md", lesson_text("Turn", f"turn {turn} was written"))
    run("lessons", "index", cwd=vault.root)
    after = open_vault(vault.root)
    assert len(ids(after)) == 12
    assert query.find(after, "turn 5 was written")[0].title == "Turn"
    passages = [row["id"] for row in after.open_index().store.rows(["id"])]
    assert len(passages) == len(set(passages))


def test_two_processes_index_at_once(make_vault: MakeVault) -> None:
    vault = make_vault({f"{n}.md": lesson_text(f"L{n}", f"text {n}") for n in range(50)})
    children = [
        subprocess.Popen(
            [BIN / "lessons", "index"],
            cwd=vault.root,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for _ in range(2)
    ]
    assert [child.wait() for child in children] == [0, 0]
    passages = [row["id"] for row in vault.open_index().store.rows(["id"])]
    assert len(passages) == len(set(passages)) == 50
