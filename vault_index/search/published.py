"""A published index in the place of a vault: searched where it is, without a clone and without state.

`lessons index --publish` writes the rows of a vault's lessons, with their full text, beside the shared
vectors; the rows of several vaults are in one table. A process that asks reads what each search needs
once, and looks every few seconds whether a publisher wrote.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from vault_index import errors, git
from vault_index.check.trouble import MAX_SHOWN, Trouble
from vault_index.config import checked, load
from vault_index.errors import EmbedderError, SettingsError, StoreError
from vault_index.features import IndexTable
from vault_index.index import reconcile
from vault_index.index.reconcile import shared_of
from vault_index.index.rows import RECIPE
from vault_index.lesson.file import hash_of
from vault_index.store import filters, shared
from vault_index.store.lance import Remote
from vault_index.store.reader import Reader
from vault_index.store.schema import DOCUMENTS, LESSONS, SKILLS, VECTOR, Schema
from vault_index.store.shared import refused_before
from vault_index.store.table import Table
from vault_index.vault import OpenIndex, Vault

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np

    from vault_index.config import Config
    from vault_index.store.sync import Progress

FOLDER = "published"  # in the user's folder; nothing is kept there
LOOK_SECONDS = 5.0  # between two looks for a new version
ROWS = 2_000  # of a commit
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
        if not store.exists():
            raise StoreError(f"{self.uri}: nothing is published there", "lessons index --publish")
        self._looked = time.monotonic()
        if last is not None and last.store.revision() == store.revision():
            return last
        none = replace(SKILLS, table="no_skills"), replace(DOCUMENTS, table="no_documents")
        skills, documents = (Reader(self.root / "none", 0, each) for each in none)
        self._index = OpenIndex(
            store,
            embedder.name,
            lessons=store.count(filters.WHOLE),
            files=0,
            version=(0, 0, 0, 0),
            skills=skills,
            documents=documents,
            known_skills={},
        )
        return self._index


def open_published(uri: str) -> PublishedVault:
    """Open a published index with the user's settings. Raises SettingsError."""
    return PublishedVault(uri, load())


def schema_of(embedder: str) -> Schema:
    """Return the table of published lessons, by the name of the embedder."""
    return replace(LESSONS, table=shared.table_name(f"{embedder} {RECIPE}", "lessons"))


def name_of(vault: Vault) -> str:
    """Return what marks the rows of a vault: the path of its remote, else the name of its folder."""
    common = git.common_folder(git.top(vault.root))
    origin = git.origin_of(common) if common else ""
    path = origin.partition("://")[2].partition("/")[2] or origin.rpartition(":")[2]
    return path.strip("/").removesuffix(".git") or vault.root.name


def publish_rows(vault: Vault, uri: str, progress: Progress) -> int:
    """Make the rows of a vault at an address those of its index; return how many were written.

    Raises StoreError.
    """
    opened, embedder = vault.open_index(), vault.embedder
    assert embedder is not None
    mark = f"{name_of(vault)}: "
    place = Remote(uri, shared.PUBLISH_SECONDS)
    table = Table(place, embedder.dimension, schema_of(embedder.name))
    shared.publishing(uri, table.schema.table, table.exists, table.create)
    there = {row["id"]: row for row in table.rows(_EVERY, filters.begins("path", mark))}
    here, vectors = opened.store.rows_and_vectors(_EVERY, filters.FOR_AGENTS)
    assert vectors is not None
    # each with its vault in front of its ids and its path
    marked = [
        {**row, **{name: f"{mark}{row[name]}" for name in ("id", "lesson_id", "path")}}
        for row in here
    ]
    changed = [at for at, row in enumerate(marked) if there.get(row["id"]) != row]
    stale = sorted(there.keys() - {row["id"] for row in marked})
    for start in range(0, len(changed), ROWS):
        some = changed[start : start + ROWS]
        table.replace([{**marked[at], VECTOR: vectors[at]} for at in some], ())
        progress(start + len(some), len(changed))
    table.replace((), stale)
    if changed or stale:
        table.fold(shared.KEEP_VERSIONS)
    return len(changed)


def publish_vectors(vault: Vault, progress: Progress) -> dict[str, Any]:
    """Publish the vectors of a vault's index that are not there: `added`, `vectors` in all, `uri`.

    The index is up to date. Raises SettingsError without an address, StoreError, EmbedderError.
    """
    uri = vault.config[IndexTable].shared
    if not uri:
        hint = "lessons config set index.shared s3://bucket/prefix"
        raise SettingsError("no place to publish to is set", hint)
    opened = vault.open_index()
    if vault.embedder is None or opened.embedder != vault.embedder.name:
        raise EmbedderError("the index has no vectors to publish", "lessons model fetch")
    shared, rows = shared_of(vault), opened.store.count()
    vectors = _vectors(Table(opened.store.index, opened.store.dimension))
    added = shared.publish(vectors, lambda done: progress(done, max(done, rows)))
    return {"uri": uri, "added": added, "vectors": shared.count()}


def _vectors(table: Table) -> Iterator[tuple[list[str], np.ndarray]]:
    for batch in table.batches(["content_hash", VECTOR], filters.FOR_AGENTS):
        numbers = batch.column(VECTOR)
        matrix = numbers.flatten().to_numpy().reshape(len(numbers), -1)
        yield batch.column("content_hash").to_pylist(), matrix


def index(vault: Vault) -> Iterator[Trouble]:
    """Look whether vectors come from `[index] shared`, and what was refused of them."""
    uri = vault.config[IndexTable].shared
    if not uri or vault.embedder is None:
        return
    noted = refused_before(vault.config.home)
    if noted.get("uri") == uri:
        for row in noted["rows"][:MAX_SHOWN]:
            what = f"{uri}: refused row {row}"
            yield Trouble("index", what, "ask who publishes there; it was embedded here")
    try:
        reconcile.shared_of(vault).count()
    except errors.StoreError as error:
        yield Trouble("index", error.message, error.hint)
