"""Shared by many machines: vectors and rows at an address, in a folder or an object store.

CI publishes (`lessons index --publish`, on Ray if asked); laptops take vectors from there and embed the
rest; a process without a clone searches the rows. The rest of the package calls these functions alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext, suppress
from dataclasses import asdict, replace
from random import SystemRandom
from typing import TYPE_CHECKING, Any, cast

from vault_index.check.finding import Trouble
from vault_index.embed.cache import VectorCache
from vault_index.errors import EmbedderError, SettingsError, StoreError, VaultError
from vault_index.features import IndexTable
from vault_index.index import rows
from vault_index.publish import vectors
from vault_index.publish.vectors import SharedVectors
from vault_index.store import filters, manifest, ownership
from vault_index.store.schema import LESSONS, RECIPE, VECTOR
from vault_index.store.table import Table

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np

    from vault_index.publish.published import PublishedVault
    from vault_index.store.schema import LessonRow
    from vault_index.store.sync import Progress
    from vault_index.vault import Vault


_EMBEDDED = ("content_hash", "document", "title", "text", "taught")  # what `rows.embed` reads
COMPARED_AT_ONCE = 32  # vectors of a quiet turn: half a second of two processors


def taking(vault: Vault, index: Path | None = None) -> SharedVectors:
    """Return the vectors at `[index] shared` of the vault's embedder. Raises EmbedderError.

    What is taken of them is marked in the folder of an `index`.
    """
    config, embedder = vault.config, vault.embedder
    assert embedder is not None
    recipe = f"{embedder.name} {RECIPE}"
    return SharedVectors(config[IndexTable].shared, recipe, embedder.dimension, config.home, index)


def compare_some(vault: Vault) -> bool:
    """Embed some vectors that were taken, compare them, and mend the wrong ones. Whether more are left.

    The watcher does it when it is quiet, until all were compared. What is right is then kept for all of
    the user's vaults.
    """
    with suppress(VaultError):  # the next sweep tries again
        opened, embedder = vault.open_index(), vault.embedder
        left = vectors.marked(opened.store.index)
        if not left or embedder is None or embedder.name != opened.embedder:
            return False
        some = SystemRandom().sample(sorted(left), min(COMPARED_AT_ONCE, len(left)))
        there = opened.store.rows(_EMBEDDED, filters.any_of("content_hash", some))
        texts = {str(row["content_hash"]): cast("LessonRow", row) for row in there}
        made = dict(zip(texts, rows.embed(embedder, [*texts.values()]), strict=True))
        with ownership.held(vault.index_dir, wait=False) as is_free:
            index = manifest.current(vault.index_dir)
            if is_free and index == opened.store.index:
                wrong = _mend(index, made)
                left = vectors.marked(index) - {*some}
                cache = VectorCache(
                    vault.config.home, f"{embedder.name} {RECIPE}", embedder.dimension
                )
                cache.put(made)
                if wrong:
                    taking(vault).note_refused(dict.fromkeys(wrong, vectors.WRONG))
                vectors.mark(index, left)
        return bool(left)
    return False


def _mend(index: Path, made: Mapping[str, np.ndarray]) -> list[str]:
    """Put vectors that were made here in the place of wrong ones; return whose. Raises WriteError."""
    known = manifest.load(index)
    table = Table(index, known.dimension)
    there, taken = table.rows_and_vectors(
        [name for name in LESSONS.columns() if name != VECTOR],
        filters.any_of("content_hash", made),
    )
    assert taken is not None
    pairs = zip(there, taken, strict=True)
    wrong = [
        {**row, VECTOR: made[row["content_hash"]]}
        for row, vector in pairs
        if float(vector @ made[row["content_hash"]]) < vectors.MIN_COSINE
    ]
    if wrong:
        manifest.mark_dirty(index, [])
        table.replace(wrong, ())
        manifest.save(index, replace(known, derived={}))  # all that follows is made again
    return sorted({row["content_hash"] for row in wrong})


def state(vault: Vault) -> dict[str, Any]:
    """Return how many vectors were taken and are not compared yet, for `lessons status`."""
    with suppress(VaultError):
        return {"vectors_to_compare": len(vectors.marked(vault.open_index().store.index))}
    return {"vectors_to_compare": 0}


def publish(
    vault: Vault, index: Callable[[], Any], progress_of: Callable[[str], Progress], engine: str
) -> dict[str, Any]:
    """Bring the index up to date by `index`, and publish its vectors and the rows of its lessons.

    The `engine` embeds: this process for "", `ray` or the address of a cluster. Return `uri`, vectors
    `added`, `vectors` in all, `rows` written, `stats`. Raises SettingsError, StoreError, EmbedderError.
    """
    from vault_index.publish import on_ray, published

    with on_ray.embedding(vault, engine) if engine else nullcontext():
        stats = index()
    uri = vault.config[IndexTable].shared
    if not uri:
        hint = "lessons config set index.shared s3://bucket/prefix"
        raise SettingsError("no place to publish to is set", hint)
    opened = vault.open_index()
    if vault.embedder is None or opened.embedder != vault.embedder.name:
        raise EmbedderError("the index has no vectors to publish", "lessons model fetch")
    shared = taking(vault)
    added = shared.publish(opened.store, progress_of("publishing vectors"))
    written = published.publish_rows(vault, uri, progress_of("publishing lessons"))
    done = {"uri": uri, "added": added, "vectors": shared.count(), "rows": written}
    return {**done, "stats": asdict(stats)}


def open_index(uri: str) -> PublishedVault:
    """Open a published index with the user's settings. Raises SettingsError."""
    from vault_index.config import load
    from vault_index.publish.published import PublishedVault

    return PublishedVault(uri, load())


def troubles(vault: Vault) -> Iterator[Trouble]:
    """Look whether vectors come from `[index] shared`, and what was refused of them."""
    uri = vault.config[IndexTable].shared
    if not uri or vault.embedder is None:
        return
    shared = taking(vault)
    try:
        shared.count()
        refused = shared.refused()
    except StoreError as error:
        yield Trouble("index", error.message, error.hint)
        return
    for row in refused:
        what = f"{uri}: refused row {row}"
        yield Trouble("index", what, "ask who publishes there; it was embedded here")
