"""Publish what an index has to `[index] shared`, for the laptops of a team: `lessons index --publish`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from vault_index.errors import EmbedderError, SettingsError
from vault_index.index.reconcile import shared_of
from vault_index.store.lance import LanceTable
from vault_index.store.schema import LESSONS, VECTOR

if TYPE_CHECKING:
    import numpy as np

    from vault_index.vault import Vault


def publish(vault: Vault, progress: Callable[[int, int], None]) -> dict[str, Any]:
    """Publish the vectors of a vault's index that are not there: `added`, `vectors` in all, `uri`.

    The index is up to date. Raises SettingsError without an address, StoreError, EmbedderError.
    """
    uri = vault.config.index.shared
    if not uri:
        raise SettingsError(
            "no place to publish to is set",
            "lessons config set index.shared s3://bucket/prefix",
        )
    opened = vault.open_index()
    if vault.embedder is None or opened.embedder != vault.embedder.name:
        raise EmbedderError("the index has no vectors to publish", "lessons model fetch")
    shared, rows = shared_of(vault), opened.store.count()
    vectors = _vectors(LanceTable(opened.store.index, LESSONS.table, check=lambda: None))
    added = shared.publish(vectors, lambda done: progress(done, max(done, rows)))
    return {"uri": uri, "added": added, "vectors": shared.count()}


def _vectors(table: LanceTable) -> Iterator[tuple[list[str], np.ndarray]]:
    for batch in table.batches(["content_hash", VECTOR]):
        numbers = batch.column(VECTOR)
        matrix = numbers.flatten().to_numpy().reshape(len(numbers), -1)
        yield batch.column("content_hash").to_pylist(), matrix
