"""The vectors of rows: those kept in the table or for all of the user's vaults, and new ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from vault_index.index import rows as lesson_rows

if TYPE_CHECKING:
    import numpy as np

    from vault_index.embed import Embedder
    from vault_index.embed.cache import VectorCache
    from vault_index.store.schema import LessonRow
    from vault_index.store.table import Table

Vectors = Mapping[str, "np.ndarray"]  # by content hash: float32[dimension]


def kept(table: Table, cache: VectorCache, hashes: Collection[str]) -> Vectors:
    """Return the vectors of contents that need not be embedded; none for a table without vectors."""
    if not table.dimension:
        return {}
    in_table = table.vectors(sorted(hashes))
    return in_table | cache.get(set(hashes) - set(in_table))


def embed_missing(
    rows: Sequence[LessonRow], vectors: Vectors, embedder: Embedder | None, cache: VectorCache
) -> Vectors:
    """Embed the rows whose vectors are not there, keep these, and return them.

    Without an embedder nothing is embedded. Raises EmbedderError.
    """
    if embedder is None:
        return {}
    missing = {row["content_hash"]: row for row in rows if row["content_hash"] not in vectors}
    if not missing:
        return {}
    embedded = lesson_rows.embed(embedder, list(missing.values()))
    new = dict(zip(missing, embedded, strict=True))
    cache.put(new)
    return new


def with_vectors(rows: Sequence[LessonRow], vectors: Vectors) -> list[LessonRow]:
    """Return rows with their vectors."""
    return [{**row, "vector": vectors[row["content_hash"]]} for row in rows]
