"""Whether a draft says what a lesson, or a rejected proposal, says already.

By the words, and by the model where there is one. The index is asked, in the watcher where one runs.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from vault_index.lesson.parse import Lesson
from vault_index.proposals import draft, shelf
from vault_index.search import duplicates, entries, query
from vault_index.search.options import Query
from vault_index.store import filters

if TYPE_CHECKING:
    import numpy as np

    from vault_index.vault import Vault

CANDIDATES = 5  # hits of a search whose words are compared
SHOWN = 3


def of(vault: Vault, title: str, text: str) -> dict[str, Any]:
    """Compare a draft with the lessons in the index and the rejected proposals of a vault.

    Return `same`, the [id, title] of the lesson that has this text, or None; `near`, lessons as
    [id, title, likeness], the most like first; `rejected`; the `categories` of all lessons; and
    `embedder` and `vector`, "" without.
    """
    lesson = Lesson("", "proposal.md", title, text)
    vectors = duplicates.vectors(vault, [lesson], lesson.path)
    cosines = dict.fromkeys(_by_words(vault, title, text), 0.0)
    for vector in vectors:
        cosines |= {row["lesson_id"]: cosine for cosine, row in duplicates.nearest(vault, vector)}
    near, same = [], None
    own, id = shelf.hashed(draft.words(f"{title} {text}")), draft.id_of(title, text)
    columns = ("lesson_id", "title", "text")
    where = filters.all_of(filters.wholes_of(sorted(cosines)), filters.FOR_AGENTS)
    for row in vault.open_index().store.rows(columns, where):
        if draft.id_of(row["title"], row["text"]) == id:
            same = [row["lesson_id"], row["title"]]
        other = shelf.hashed(draft.words(f"{row['title']} {row['text']}"))
        alike = shelf.words_in_common(own, other)
        cosine = cosines[row["lesson_id"]]
        if alike >= shelf.SAME_WORDS or cosine >= duplicates.DUPLICATE_COSINE:
            near.append([row["lesson_id"], row["title"], round(max(alike, cosine), 3)])
    embedder = vault.open_index().embedder if vectors else ""
    return {
        "same": same,
        "near": sorted(near, key=lambda each: (-each[2], each[0]))[:SHOWN],
        "categories": list(entries.tally(vault)),
        "rejected": _is_rejected(vault, own, vectors, embedder),
        "embedder": embedder,
        "vector": shelf.packed(vectors[0]) if vectors else "",
    }


def _by_words(vault: Vault, title: str, text: str) -> list[str]:
    """Return the ids of the lessons that a search for a draft finds first."""
    hits = query.run(vault, Query(f"{title} {text}", k=CANDIDATES)).hits
    return [hit.lesson_id for hit in hits]


def _is_rejected(
    vault: Vault, words: Sequence[int], vectors: Sequence[np.ndarray], embedder: str
) -> bool:
    others = shelf.rejected(shelf.folder_of(vault))
    if shelf.has_words_of(words, others):
        return True
    kept = [other.vector for other in others if other.vector and other.embedder == embedder]
    if not vectors or not kept:
        return False
    import numpy as np

    rows = [np.frombuffer(base64.b64decode(vector), "<f2") for vector in kept]
    matrix = np.array([row for row in rows if len(row) == len(vectors[0])], np.float32)
    near = matrix.reshape(-1, len(vectors[0])) @ vectors[0]
    return bool((near >= duplicates.DUPLICATE_COSINE).any())
