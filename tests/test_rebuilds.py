"""When the index is built anew, and what an interruption leaves: nothing that is not the files."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable

import pytest

from tests.conftest import BIN, commit, lesson_text, run, write
from tests.embedders import FailingEmbedder, WordEmbedder
from tests.indexed import HEAP, LOCK, PIPE, assert_same_as_a_rebuild, ids, later, with_words
from vault_index import catalog, difference, index, manifest, search
from vault_index.errors import EmbedderError, WriteError
from vault_index.vault import Vault, open_vault

MakeVault = Callable[..., Vault]


# when everything has to be built anew


def test_another_embedder_rebuilds(make_vault: MakeVault) -> None:
    vault = make_vault({"a.md": HEAP})
    with_words(vault)
    index.sync(vault)
    with_words(vault, WordEmbedder("other", 32))
    stats = index.sync(vault)
    assert stats.rebuilt == "the index was built with words, now it is other"
    assert vault.open_index().embedder == "other"
    assert search.find(vault, "heap")[0].lesson_id == "a"


def test_an_older_schema_rebuilds(make_vault: MakeVault) -> None:
    vault = make_vault({"a.md": HEAP})
    with_words(vault)
    index.sync(vault)
    file = vault.open_index().store.index / "manifest.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "schema": manifest.SCHEMA - 1}))
    stats = index.sync(vault)
    assert stats.rebuilt.startswith(f"the index had schema {manifest.SCHEMA - 1}, now it is")
    assert ids(vault) == ["a"]


def test_a_rebuild_swaps_and_readers_go_on(make_vault: MakeVault) -> None:
    vault = make_vault({"a.md": HEAP})
    with_words(vault)
    index.sync(vault)
    reader = vault.open_index()
    assert index.sync(vault, rebuild=True).rebuilt == "asked for"
    assert reader.store.count() == 1  # the old folder stands until nobody can stand on it
    assert vault.open_index().store.index != reader.store.index


def test_rebuild_from_the_command_line(make_vault: MakeVault) -> None:
    vault = make_vault({"a.md": HEAP})
    run("lessons", "index", cwd=vault.root)
    first = vault.open_index().store.index
    ran = run("lessons", "index", "--rebuild", "--json", cwd=vault.root)
    assert (ran.json["rebuilt"], ran.json["added"]) == ("asked for", 1)
    assert vault.open_index().store.index != first


# interruptions


def many_passages() -> dict[str, str]:
    """Give files for two batches: 24 lessons of some 40 passages each."""
    return {
        f"{number:02}.md": lesson_text(
            f"Lesson {number}", "\n\n".join(f"Paragraph {number}-{n}. " * 30 for n in range(60))
        )
        for number in range(24)
    }


def test_an_interrupted_build_goes_on_where_it_was(make_vault: MakeVault) -> None:
    vault = make_vault(many_passages())
    failing = with_words(vault, FailingEmbedder(calls=2))  # a batch: its titles, then its texts
    with pytest.raises(EmbedderError):
        index.sync(vault)
    assert manifest.current(vault.index_folder) is None  # half an index is not in force

    going_on = with_words(vault)
    stats = index.sync(vault)
    assert stats.rebuilt == "first index"
    assert stats.added + stats.unchanged == 24
    assert stats.unchanged >= 12
    assert not set(texts_of(failing)) & set(texts_of(going_on))
    assert_same_as_a_rebuild(vault)


def texts_of(embedder: WordEmbedder) -> list[str]:
    return [text for text in embedder.documents if text.startswith("Paragraph")]


@pytest.mark.parametrize("then", ["deleted", "put back", "moved"])
def test_stopped_between_rows_and_manifest(make_vault: MakeVault, then: str) -> None:
    """A kill there leaves no rows that nobody knows of, and none that are not the file's."""
    vault = make_vault({"a.md": HEAP, "gone.md": PIPE})
    with_words(vault)
    later(vault.folder / "a.md")
    later(vault.folder / "gone.md")
    index.sync(vault)
    note = vault.open_index().store.index / "manifest.json"
    kept = write(vault.root / "kept", b"")
    shutil.copy2(vault.folder / "a.md", kept)

    def disk_refuses_the_manifest(_done: int, _all: int) -> None:
        note.rename(vault.root / "manifest-then")
        note.mkdir()

    write(vault.folder / "a.md", LOCK)
    write(vault.folder / "new.md", lesson_text("New", "Not there for long."))
    (vault.folder / "gone.md").rename(vault.root / "gone.md")
    with pytest.raises(WriteError):
        index.sync(vault, progress=disk_refuses_the_manifest)
    note.rmdir()
    (vault.root / "manifest-then").rename(note)

    if then == "deleted":
        (vault.folder / "new.md").unlink()
    elif then == "put back":
        shutil.copy2(kept, vault.folder / "a.md")
        (vault.root / "gone.md").rename(vault.folder / "gone.md")
    else:
        (vault.folder / "new.md").rename(vault.folder / "moved.md")
    index.sync(vault)
    assert_same_as_a_rebuild(vault)


def test_kill_during_index(make_vault: MakeVault) -> None:
    vault = make_vault(many_passages())
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
        if manifest.current(vault.index_folder):
            assert search.find(open_vault(vault.root), "paragraph", k=3)
        write(vault.folder / f"{turn:02}.md", lesson_text("Turn", f"turn {turn} was written"))
    run("lessons", "index", cwd=vault.root)
    after = open_vault(vault.root)
    assert len(ids(after)) == 24
    assert search.find(after, "turn 5 was written")[0].title == "Turn"
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


def test_what_follows_from_the_lessons_is_made_good_when_the_embedder_is_back(
    make_vault: MakeVault,
) -> None:
    vault = make_vault({"a/b.md": HEAP})
    with_words(vault, FailingEmbedder(calls=2))  # the lesson; not the names of its categories
    index.sync(vault)
    assert ids(vault) == ["a/b"]
    assert catalog.places(vault) == []
    with_words(vault)
    index.sync(vault)
    assert [one.path for one in catalog.places(vault)] == ["a"]


def test_who_asks_for_a_rebuild_distrusts_all_vectors_that_were_kept(make_vault: MakeVault) -> None:
    vault = make_vault({"db/lock.md": LOCK})
    skill = "---\ndescription: Bake bread.\n---\n"
    write(vault.root / "skills/bake/SKILL.md", skill)
    embedder = with_words(vault)
    index.sync(vault)
    first = sorted(set(embedder.documents))
    embedder.documents.clear()
    index.sync(vault, rebuild=True)
    assert sorted(set(embedder.documents)) == first


def test_a_file_that_is_back_before_it_is_taken_out_leaves_no_row(
    make_vault: MakeVault, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when git rewrites files while the watcher looks and asks git who changed what."""
    vault = make_vault({"a.md": HEAP, "b.md": PIPE})
    commit(vault.root)
    with_words(vault)
    index.sync(vault)
    write(vault.folder / "a.md", HEAP + "Changed.\n")
    commit(vault.root)
    (vault.folder / "a.md").unlink()
    between = difference.between

    def and_back(
        vault: Vault, known: manifest.Manifest, ask_git: bool, *, read_all: bool = False
    ) -> difference.Difference:
        found = between(vault, known, ask_git, read_all=read_all)
        write(vault.folder / "a.md", HEAP + "Changed.\n")
        return found

    with monkeypatch.context() as patch:
        patch.setattr(difference, "between", and_back)
        index.sync(vault)
    (vault.folder / "a.md").unlink()
    index.sync(vault)
    assert ids(vault) == ["b"]
    assert_same_as_a_rebuild(vault)


def test_two_indexes_of_one_second_with_one_name(
    make_vault: MakeVault, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name of an index ends with two random bytes, which may come twice."""
    vault = make_vault({"a.md": HEAP})
    with_words(vault)
    first, second = "20260101-000000-6161", "20260101-000000-6262"
    names = iter([first, first, second])
    monkeypatch.setattr(index, "_index_name", lambda: next(names))
    index.sync(vault)
    index.sync(vault, rebuild=True)
    assert vault.open_index().store.index.name == second
    assert ids(vault) == ["a"]
