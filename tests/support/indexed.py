"""What tests of the index share: an embedder of words, lessons, and the comparison with a rebuild."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.embedders import WordEmbedder
from tests.support.files import lesson_text, write
from tests.support.floors import keep_floors
from vault_index.edit import init
from vault_index.index import reconcile
from vault_index.retrieval import entries
from vault_index.store import manifest, ownership
from vault_index.store.lance import Table
from vault_index.store.schema import LESSONS
from vault_index.vault import Vault, open_vault

HEAP = lesson_text("Heap", "Raise the heap when the build runs out of memory.")
LOCK = lesson_text("Lock", "Migrations wait for a lock on the table.")
PIPE = lesson_text("Pipe", "A closed pipe raises BrokenPipeError.")


def with_words(vault: Vault, embedder: WordEmbedder | None = None) -> WordEmbedder:
    """Set the embedder of these tests for a vault; return it."""
    embedder = embedder or WordEmbedder()
    vault.embedder = embedder
    keep_floors(vault)
    return embedder


def copy_of(shelf: Path, root: Path) -> Vault:
    """Copy a vault with its index, which is marked as the copy's: indexing again takes seconds."""
    shutil.copytree(shelf, root, symlinks=True, ignore=shutil.ignore_patterns(".vault_index"))
    ownership.claim(root / ".vault_index")  # a copied index would not be believed
    shutil.copytree(
        shelf / ".vault_index",
        root / ".vault_index",
        ignore=shutil.ignore_patterns("owner"),
        dirs_exist_ok=True,
    )
    return open_vault(root)


def full_text_vault(root: Path, texts: Mapping[str, str | bytes]) -> Path:
    """Make a vault with an index for full text, to be copied by tests; return its root."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LESSONS_EMBEDDER", "none")
        init(root)
        for path, text in texts.items():
            write(root / "lessons" / path, text)
        vault = open_vault(root)
        reconcile.sync(vault)
    return root


def kept_on(
    shelf: Path, make: Callable[[], Vault], root: Path, embedder: WordEmbedder | None = None
) -> Vault:
    """Copy the vault on a shelf; the first test makes it there: indexing takes seconds.

    Without an `embedder` both take the embedder of their settings.
    """
    if not shelf.exists():
        first = make()
        if embedder:
            first.embedder = embedder
        reconcile.sync(first)
        shutil.copytree(first.root, shelf)
    vault = copy_of(shelf, root)
    if embedder:
        with_words(vault, embedder)
    reconcile.sync(vault)  # the copies are other files
    return vault


def of_this_repository(home: Path, folder: Path, root: Path) -> Vault:
    """Copy a vault with this repository's lessons, and their vectors to the user's `own` folder."""
    shutil.copy(home / "vectors.sqlite3", folder)
    return copy_of(home / "team", root)


def ids(vault: Vault) -> list[str]:
    return [str(entry.id) for entry in entries.entries(vault)]


def table(vault: Vault) -> tuple[list[dict[str, Any]], np.ndarray]:
    """Return all rows by id, and their vectors apart."""
    store = vault.open_index().store
    rows = sorted(store.rows([*LESSONS.columns()]), key=lambda row: str(row["id"]))
    return rows, np.array([row.pop("vector") for row in rows])


def assert_same_as_a_rebuild(vault: Vault) -> None:
    """Check that the index holds what one built from nothing holds."""
    before, vectors = table(vault)
    other = open_vault(vault.root)
    with_words(other)
    reconcile.rebuild(other)
    after, fresh = table(other)
    assert_alike(before, after)
    assert np.allclose(vectors, fresh, atol=1e-6)


def assert_alike(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> None:
    """Check that a rebuild gives the same rows, and print the differences."""
    lines = unlike(before, after)
    assert not lines, "\n".join(lines)


def unlike(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> list[str]:
    """List how an index's rows differ from a rebuild's, a line for each value."""
    old, new = ({str(row["id"]): row for row in rows} for rows in (before, after))
    lines = [f"id {id} twice" for rows, by_id in ((before, old), (after, new))
             for id in by_id if sum(row["id"] == id for row in rows) > 1]  # fmt: skip
    lines += [
        f"{id}: only in the index: {old[id].get('text')!r}" for id in sorted(set(old) - set(new))
    ]
    lines += [
        f"{id}: only in the rebuild: {new[id].get('text')!r}" for id in sorted(set(new) - set(old))
    ]
    for id in sorted(set(old) & set(new)):
        lines += [
            f"{id}: {column} is {old[id][column]!r}, in the rebuild {new[id][column]!r}"
            for column in new[id]
            if old[id][column] != new[id][column]
        ]
    return lines


def later(path: Path, seconds: int = 10) -> None:
    """Set the mtime of a file back."""
    stamp = path.stat().st_mtime - seconds
    os.utime(path, (stamp, stamp))


def swap(one: Path, other: Path) -> None:
    """Exchange two files by rename: each keeps its mtime, and its size if those are alike."""
    if one != other:
        beside = one.with_name(f".{one.name}.swap")
        one.rename(beside)
        other.rename(one)
        beside.rename(other)


@contextmanager
def killed_at(monkeypatch: pytest.MonkeyPatch, step: str) -> Iterator[None]:
    """Kill whoever writes the index at "the rows" or at "the manifest"."""

    def killed(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        if step == "the rows":
            patch.setattr(Table, "merge_arrow", killed)
        if step == "the manifest":
            patch.setattr(manifest, "save", killed)
        with pytest.raises(KeyboardInterrupt):
            yield
