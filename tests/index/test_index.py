"""The index is a pure function of the files: whatever happened, a sync ends at the same rows."""

from __future__ import annotations

import os
import random
from datetime import datetime
from pathlib import Path

import pytest

from tests.support.files import MakeVault, commit, lesson_text, write
from tests.support.indexed import (
    HEAP,
    LOCK,
    PIPE,
    assert_same_as_a_rebuild,
    ids,
    later,
    swap,
    with_words,
)
from vault_index import files
from vault_index.index import reconcile
from vault_index.retrieval import entries
from vault_index.store.sync import Stats

pytestmark = pytest.mark.slow

BROKEN = "---\ntitle: fine\ntags: one: two\n---\ntext\n"


def counts(stats: Stats) -> dict[str, int]:
    """Return what a sync counted, without the zeros."""
    names = ("added", "changed", "moved", "removed", "unchanged", "embedded", "pending")
    return {name: getattr(stats, name) for name in names if getattr(stats, name)}


def year_of(moment: datetime | None) -> int:
    return moment.year if moment else 0


# what a sync tells and does


def test_each_kind_of_change_is_counted(make_vault: MakeVault) -> None:
    vault = make_vault({"a.md": HEAP, "b.md": LOCK, "c.md": PIPE, "d.md": lesson_text("D", "four")})
    embedder = with_words(vault)
    assert counts(reconcile.sync(vault)) == {"added": 4, "embedded": 4}
    embedder.documents.clear()

    write(vault.lessons_dir / "a.md", lesson_text("Heap", "Something else."))
    (vault.lessons_dir / "b.md").rename(write(vault.lessons_dir / "db/lock.md", ""))
    (vault.lessons_dir / "c.md").unlink()
    write(vault.lessons_dir / "e.md", lesson_text("E", "five"))
    stats = reconcile.sync(vault)

    assert counts(stats) == {
        "added": 1,
        "changed": 1,
        "moved": 1,
        "removed": 1,
        "unchanged": 1,
        "embedded": 2,
    }
    assert sorted(embedder.documents) == [
        "E",
        "Heap",
        "Something else.",
        "db",
        "db",
        "five",
    ]  # db: a category, for its place and for the classifier
    assert ids(vault) == ["a", "d", "db/lock", "e"]
    assert str(stats).startswith("1 added, 1 changed, 1 moved, 1 removed, 1 unchanged")


def test_a_change_of_frontmatter_alone_is_not_embedded_again(make_vault: MakeVault) -> None:
    vault = make_vault({"a.md": HEAP})
    embedder = with_words(vault)
    reconcile.sync(vault)
    embedder.documents.clear()
    write(vault.lessons_dir / "a.md", HEAP.replace("---\nRaise", "tags: [node]\n---\nRaise"))
    assert counts(reconcile.sync(vault)) == {"changed": 1}
    assert embedder.documents == []
    assert entries.entry(vault, "a").tags == ("node",)


@pytest.fixture
def trusting_stat(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if all files were old enough for their stat to be trusted: no ctime can be set."""
    monkeypatch.setattr(files, "RACY_NS", 0)


@pytest.mark.usefixtures("trusting_stat")
def test_a_change_that_keeps_size_and_mtime_is_seen(make_vault: MakeVault) -> None:
    vault = make_vault({"a.md": HEAP, "b.md": LOCK, "c.md": PIPE})
    embedder = with_words(vault)
    reconcile.sync(vault)
    save_unseen(vault.lessons_dir / "a.md", "9")
    assert counts(reconcile.sync(vault)) == {"changed": 1, "unchanged": 2, "embedded": 1}
    assert "9" in entries.entry(vault, "a").text

    embedder.documents.clear()
    write(vault.lessons_dir / "c.md", LOCK.replace("Lock", "Bolt"))
    os.utime(vault.lessons_dir / "b.md", ns=(0, (vault.lessons_dir / "c.md").stat().st_mtime_ns))
    reconcile.sync(vault)
    swap(vault.lessons_dir / "b.md", vault.lessons_dir / "c.md")
    assert counts(reconcile.sync(vault)) == {"changed": 2, "unchanged": 1}
    assert [entries.entry(vault, name).title for name in "bc"] == ["Bolt", "Lock"]
    assert_same_as_a_rebuild(vault)


# files that are not as they should be


def test_a_broken_file_keeps_its_last_good_rows_until_it_is_mended(make_vault: MakeVault) -> None:
    vault = make_vault({"a.md": HEAP, "b.md": LOCK}, words=True, indexed=True)
    write(vault.lessons_dir / "a.md", BROKEN)

    (problem,) = reconcile.sync(vault).problems
    assert problem.path == "lessons/a.md"
    assert problem.line > 0
    assert "frontmatter is not YAML" in problem.message
    assert "put the value in quotes" in problem.message
    assert entries.entry(vault, "a").title == "Heap"
    assert reconcile.sync(vault).problems == [problem]  # and it is told every time

    write(vault.lessons_dir / "a.md", PIPE)
    assert reconcile.sync(vault).problems == []
    assert entries.entry(vault, "a").title == "Pipe"


def test_of_two_files_with_one_id_the_first_by_path_has_it(make_vault: MakeVault) -> None:
    with_id = "---\nid: heap\ntitle: {}\n---\ntext of {}\n"
    vault = make_vault(
        {"b.md": with_id.format("B", "b"), "c.md": with_id.format("C", "c")}, words=True
    )
    (problem,) = reconcile.sync(vault).problems
    assert problem.path == "lessons/c.md"
    assert problem.message == "the id 'heap' is taken by b.md"
    assert {e.id: e.title for e in entries.entries(vault)} == {"heap": "B", "c": "C"}

    write(vault.lessons_dir / "a.md", with_id.format("A", "a"))
    reconcile.sync(vault)
    titles = {e.id: e.title for e in entries.entries(vault)}
    assert titles == {"heap": "A", "b": "B", "c": "C"}

    for name in ("a.md", "b.md"):
        (vault.lessons_dir / name).unlink()
        reconcile.sync(vault)
    assert {e.id: e.title for e in entries.entries(vault)} == {"heap": "C"}
    assert reconcile.sync(vault).problems == []


# what git knows


def test_a_rename_keeps_its_history(make_vault: MakeVault, monkeypatch: pytest.MonkeyPatch) -> None:
    vault = make_vault({"a.md": HEAP}, words=True)
    monkeypatch.setenv("GIT_AUTHOR_DATE", "2020-01-01T00:00:00Z")
    commit(vault.root)
    reconcile.sync(vault)

    (vault.lessons_dir / "a.md").rename(vault.lessons_dir / "b.md")
    monkeypatch.setenv("GIT_AUTHOR_DATE", "2021-01-01T00:00:00Z")
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Grace Hopper")
    commit(vault.root)
    reconcile.sync(vault)

    entry = entries.entry(vault, "b")
    assert (entry.author, year_of(entry.created_at), year_of(entry.updated_at)) == (
        "Grace Hopper",
        2020,
        2021,
    )


# a pure function of the files


@pytest.mark.parametrize("seed", range(6))
def test_any_way_to_the_same_files_gives_the_same_rows(make_vault: MakeVault, seed: int) -> None:
    chance = random.Random(seed)
    vault = make_vault(words=True)
    for _ in range(8):
        for _ in range(chance.randint(1, 4)):
            change_something(chance, vault.lessons_dir)
        if chance.random() < 0.3:
            commit(vault.root, "some")
        reconcile.sync(vault)
    repair(vault.lessons_dir)
    reconcile.sync(vault)
    assert_same_as_a_rebuild(vault)


def save_unseen(path: Path, digit: str) -> None:
    """Change a character of a file so that its size and mtime stay, as after `touch -r`."""
    stat = path.stat()
    text = path.read_text("utf-8").rstrip("\n")
    path.write_text(f"{text[:-1]}{digit}\n", "utf-8")
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def change_something(chance: random.Random, folder: Path) -> None:
    """Write, break, touch, move or delete one file: what people and git do between two syncs.

    Or change it so that its size and mtime stay.
    """
    files = sorted(folder.rglob("*.md"))
    place = folder / chance.choice(["", "devops", "devops/ci"]) / f"{chance.choice('abcdef')}.md"
    what = chance.choice(
        [
            *("write", "write", "write", "long", "break", "touch", "move", "delete"),
            *("save unseen", "save unseen", "swap", "link"),
        ]
    )
    if what in ("write", "long") or not files:
        key = f"id: {chance.choice('xyz')}\n" if chance.random() < 0.3 else ""
        text = f"text {chance.randint(0, 9)} about {chance.choice(['heaps', 'locks', 'pipes'])}"
        if what == "long":
            text = "\n\n".join(f"{text}, paragraph {n}. " * 8 for n in range(8))
        write(place, f"---\ntitle: T{chance.randint(0, 3)}\n{key}---\n{text}\n")
    elif what == "break":
        write(chance.choice(files), BROKEN)
    elif what == "touch":
        later(chance.choice(files), chance.randint(1, 99))
    elif what == "move":
        place.parent.mkdir(parents=True, exist_ok=True)
        chance.choice(files).replace(place)
    elif what == "save unseen":
        save_unseen(chance.choice(files), chance.choice("0123456789"))
    elif what == "swap":
        swap(chance.choice(files), chance.choice(files))
    elif what == "link":
        file = chance.choice(files)
        if file != place:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.unlink(missing_ok=True)
            place.hardlink_to(file)
    else:
        chance.choice(files).unlink()


def repair(folder: Path) -> None:
    """Take away broken files: a rebuild cannot know the rows they had."""
    for file in folder.rglob("*.md"):
        if "tags: one: two" in file.read_text():
            file.unlink()
