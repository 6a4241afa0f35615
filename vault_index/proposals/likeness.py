"""Whether a draft says what a lesson, or a rejected proposal, says already.

By the words, and by the model where there is one. The index is asked, in the watcher where one runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from vault_index.lesson.parse import Lesson
from vault_index.proposals import draft, shelf, sketch
from vault_index.search import duplicates, entries, query
from vault_index.search.options import Query
from vault_index.store import filters

if TYPE_CHECKING:
    import numpy as np

    from vault_index.proposals.draft import Proposal
    from vault_index.vault import Vault

CANDIDATES = 5  # lessons that are compared on each side: with most of the words, nearest by vector
NEAREST_ROWS = 16  # passages among which these are: of a long lesson several may be near
SHOWN = 3
PATH = "proposal.md"


def of(vault: Vault, proposal: Proposal, without: str = "") -> dict[str, Any]:
    """Compare a proposal with the lessons in the index and the rejected proposals of a vault.

    Return `same`, the [id, title] of the lesson that has this text, or None; `near`, lessons as
    [id, title, likeness], the most like first; `nearest`, the first lesson however little it is like
    it, or None; `rejected`; the `categories` of all lessons; and `embedder` and `vector`, "" without.
    `without` is the id of a lesson that is left out.
    """
    title, text = proposal.title, proposal.text
    vectors = duplicates.vectors(vault, [Lesson("", PATH, title, text)], PATH)
    cosines = dict.fromkeys(_by_words(vault, title, text), 0.0)
    for vector in vectors:
        cosines |= dict(_by_vector(vault, vector))
    cosines.pop(without, None)
    every, same = [], None
    own, id = sketch.hashed(draft.words(f"{title} {text}")), draft.id_of(title, text)
    columns = ("lesson_id", "title", "text")
    where = filters.all_of(filters.wholes_of(sorted(cosines)), filters.FOR_AGENTS)
    for row in vault.open_index().store.rows(columns, where) if cosines else ():
        if draft.id_of(row["title"], row["text"]) == id:
            same = [row["lesson_id"], row["title"]]
        other = sketch.hashed(draft.words(f"{row['title']} {row['text']}"))
        alike, cosine = sketch.words_in_common(own, other), cosines[row["lesson_id"]]
        is_near = alike >= sketch.SAME_WORDS or cosine >= duplicates.DUPLICATE_COSINE
        every.append(([row["lesson_id"], row["title"], round(max(alike, cosine), 3)], is_near))
    every.sort(key=lambda each: (-each[0][2], each[0][0]))
    seen = {
        "embedder": vault.open_index().embedder if vectors else "",
        "vector": sketch.packed(vectors[0]) if vectors else "",
    }
    rejected = sketch.same(sketch.of(proposal, seen), shelf.rejected(shelf.folder_of(vault)))
    return {
        "same": same,
        "near": [lesson for lesson, is_near in every if is_near][:SHOWN],
        "nearest": every[0][0] if every else None,
        "categories": list(entries.tally(vault)),
        "rejected": rejected is not None,
        **seen,
    }


def _by_words(vault: Vault, title: str, text: str) -> list[str]:
    """Return the ids of the lessons that full text finds first: vectors are compared apart."""
    asked = Query(f"{title} {text}", k=CANDIDATES, text_only=True)
    return [hit.lesson_id for hit in query.run(vault, asked).hits]


def _by_vector(vault: Vault, vector: np.ndarray) -> Iterator[tuple[str, float]]:
    """Yield the ids of the lessons whose beginnings are nearest to a vector, each with its cosine."""
    import numpy as np

    store = vault.open_index().store
    ids, cosines = store.nearest(vector, NEAREST_ROWS, None)
    first = np.argsort(-cosines)[:NEAREST_ROWS]
    rows = zip(first, store.take(ids[first].tolist()), strict=True)
    wholes = [(row["lesson_id"], float(cosines[at])) for at, row in rows if row["is_whole"]]
    yield from wholes[:CANDIDATES]
