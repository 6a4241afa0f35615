"""A text and its title as one vector: what a title adds to the meaning of what is below it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from vault_index.embed import Embedder

# The title is embedded apart and weighs a quarter of the prose. On the evaluation set that keeps
# .56 of the right answers at 2% false injections, title and text in one keep .45, at twice the cost.
TITLE_WEIGHT = 0.25
EMBED_CHARS = 4000  # of a passage: no embedder here reads more


def embed_titled(embedder: Embedder, texts: Sequence[tuple[str, str]]) -> list[np.ndarray]:
    """Embed (title, prose) pairs: unit vectors float32[dimension] of a quarter title, one part prose."""
    import numpy as np

    titles = sorted({title for title, _ in texts if title})
    title_vectors = dict(zip(titles, embedder.embed_documents(titles), strict=True))
    vectors = []
    prose_vectors = embedder.embed_documents([prose[:EMBED_CHARS] for _, prose in texts])
    for (title, _), vector in zip(texts, prose_vectors, strict=True):
        mixed = vector + TITLE_WEIGHT * title_vectors[title] if title else vector
        vectors.append((mixed / np.linalg.norm(mixed)).astype(np.float32))
    return vectors
