"""The vectors of the journal's rows: those of its table, those kept for the user, and new ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from vault_index.embed.cache import VectorCache
from vault_index.journal.journal import Journal
from vault_index.store import manifest
from vault_index.store.schema import JournalRow
from vault_index.store.table import Table

if TYPE_CHECKING:
    import numpy as np

RECIPE = "text"  # part of the name under which vectors are kept


class Vectors:
    """Where rows of a journal find their vectors; `embedded` counts those that were made."""

    def __init__(self, journal: Journal, table: Table, cache: VectorCache) -> None:
        self._journal = journal
        self._table = table
        self._cache = cache
        self.embedded = 0

    def of(self, pairs: Sequence[tuple[JournalRow, str]]) -> list[JournalRow]:
        """Return rows with their vectors; as they are without an embedder. Raises EmbedderError."""
        embedder = self._journal.embedder
        if embedder is None:
            return [row for row, _ in pairs]
        texts = {row["content_hash"]: text for row, text in pairs}
        in_table: dict[str, np.ndarray] = self._table.vectors(sorted(texts))
        missing = {key: text for key, text in texts.items() if key not in in_table}

        def embed(new: list[str]) -> Sequence[np.ndarray]:
            self.embedded += len(new)
            made: Sequence[np.ndarray] = list(embedder.embed_documents(new))
            return made

        vectors = in_table | self._cache.get_or_make(missing, embed)
        return [row | JournalRow(vector=vectors[row["content_hash"]]) for row, _ in pairs]


def cache(journal: Journal, *, trusted: bool = True) -> VectorCache:
    """Return the vectors that are kept for all of the user's; see `VectorCache` for `trusted`."""
    embedder = journal.embedder
    name, dimension = (embedder.name, embedder.dimension) if embedder else (manifest.NO_EMBEDDER, 0)
    return VectorCache(journal.config.home, f"{name} {RECIPE}", dimension, trusted=trusted)
