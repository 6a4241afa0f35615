"""A published index in the place of a vault: searched where it is, without a clone and without state.

`lessons index --publish` writes the rows of a vault's lessons, with their full text, beside the shared
vectors; the rows of several vaults are in one table. A process that asks reads what each search needs
once, and looks every few seconds whether a publisher wrote.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from vault_index import git
from vault_index.config import checked
from vault_index.errors import EmbedderError
from vault_index.lesson.file import hash_of
from vault_index.publish import vectors
from vault_index.store import filters
from vault_index.store.lance import Remote
from vault_index.store.reader import Reader
from vault_index.store.schema import DOCUMENTS, LESSONS, RECIPE, SKILLS, VECTOR, Schema
from vault_index.vault import OpenIndex, Vault

if TYPE_CHECKING:
    from vault_index.config import Config
    from vault_index.store.sync import Progress

FOLDER = "published"  # in the user's folder; nothing is kept there
LOOK_SECONDS = 5.0  # between two looks for a new version
_EVERY = [name for name in LESSONS.columns() if name != VECTOR]


class PublishedVault(Vault):
    """The index at an address, as a vault that has no files. Raises EmbedderError without a model."""

    def __init__(self, uri: str, config: Config) -> None:
        super().__init__(config.home / FOLDER / hash_of(uri)[:8], config)
        self.uri = str(checked("index.shared", uri))
        self._index: OpenIndex | None = None
        self._looked = 0.0

    def open_index(self) -> OpenIndex:
        """Open the newest version. Raises StoreError."""
        last = self._index
        if last is not None and time.monotonic() - self._looked < LOOK_SECONDS:
            return last
        embedder = self.embedder
        if embedder is None:
            raise EmbedderError("a published index is searched by vectors", "lessons model fetch")
        store = Reader(Remote(self.uri), embedder.dimension, schema_of(embedder.name))
        self._looked = time.monotonic()
        if last is not None and last.store.revision() == store.revision():
            return last
        none = replace(SKILLS, table="no_skills"), replace(DOCUMENTS, table="no_documents")
        skills, documents = (Reader(self.root / "none", 0, each) for each in none)
        count, version = store.count(filters.WHOLE), (0, 0, 0, 0)
        self._index = OpenIndex(store, embedder.name, count, 0, version, skills, documents, {})
        return self._index


def schema_of(embedder: str) -> Schema:
    """Return the table of published lessons, by the name of the embedder."""
    return replace(LESSONS, table=vectors.table_name(f"{embedder} {RECIPE}", "lessons"))


def name_of(vault: Vault) -> str:
    """Return what marks the rows of a vault: the path of its remote, else the name of its folder."""
    common = git.common_folder(git.top(vault.root))
    origin = git.origin_of(common) if common else ""
    path = origin.partition("://")[2].partition("/")[2] or origin.rpartition(":")[2]
    return path.strip("/").removesuffix(".git") or vault.root.name


def publish_rows(vault: Vault, uri: str, progress: Progress) -> int:
    """Publish the rows of a vault that differ; return how many were written. Raises StoreError."""
    opened, embedder = vault.open_index(), vault.embedder
    assert embedder is not None
    mark = f"{name_of(vault)}: "
    table = vectors.table_at(uri, embedder.dimension, schema_of(embedder.name))
    there = {row["id"]: row for row in table.rows(_EVERY, filters.begins("path", mark))}
    here, numbers = opened.store.rows_and_vectors(_EVERY, filters.FOR_AGENTS)
    assert numbers is not None
    names = "id", "lesson_id", "path"
    marked = [{**row, **{name: f"{mark}{row[name]}" for name in names}} for row in here]
    changed = [at for at, row in enumerate(marked) if there.get(row["id"]) != row]
    stale = sorted(there.keys() - {row["id"] for row in marked})
    for start in range(0, len(changed), vectors.ROWS):
        some = changed[start : start + vectors.ROWS]
        table.replace([{**marked[at], VECTOR: numbers[at]} for at in some], ())
        progress(start + len(some), len(changed))
    table.replace((), stale)
    if changed or stale:
        table.fold(vectors.KEEP_VERSIONS)
    return len(changed)
