"""Whether a draft says what a lesson, or a rejected proposal, says already.

By the words, and by the model where there is one. The index is asked, in the watcher where one runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from vault_index.index import rows
from vault_index.lesson.parse import Lesson
from vault_index.proposals import draft, shelf
from vault_index.search import duplicates, entries, query

if TYPE_CHECKING:
    import numpy as np

    from vault_index.proposals.draft import Proposal
    from vault_index.vault import Vault

CANDIDATES = 5  # lessons with most of the words that are compared
NEAREST_ROWS = 16  # passages, nearest by vector: of a long lesson several may be near
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
    vector = _vector(vault, Lesson("", PATH, title, text))
    every, same = [], None
    own, id = shelf.hashed(draft.words(f"{title} {text}")), draft.id_of(title, text)
    for row, cosine in _candidates(vault, f"{title} {text}", vector):
        if row["lesson_id"] == without:
            continue
        if draft.id_of(row["title"], row["text"]) == id:
            same = [row["lesson_id"], row["title"]]
        other = shelf.hashed(draft.words(f"{row['title']} {row['text']}"))
        alike = shelf.words_in_common(own, other)
        is_near = alike >= shelf.SAME_WORDS or cosine >= duplicates.DUPLICATE_COSINE
        every.append(([row["lesson_id"], row["title"], round(max(alike, cosine), 3)], is_near))
    every.sort(key=lambda each: (-each[0][2], each[0][0]))
    seen = {
        "embedder": "" if vector is None else vault.open_index().embedder,
        "vector": "" if vector is None else shelf.packed(vector),
    }
    rejected = shelf.same_sketch(
        shelf.sketch_of(proposal, seen), shelf.rejected(shelf.folder_of(vault))
    )
    return {
        "same": same,
        "near": [lesson for lesson, is_near in every if is_near][:SHOWN],
        "nearest": every[0][0] if every else None,
        "categories": list(entries.tally(vault)),
        "rejected": rejected is not None,
        **seen,
    }


def _vector(vault: Vault, lesson: Lesson) -> np.ndarray | None:
    """Return the vector of a draft's beginning; None without an embedder.

    The index is not asked for it, as it is for lessons: a draft is new.
    """
    embedder, _ = query.embedder_for(vault, vault.open_index())
    if embedder is None:
        return None
    return rows.embed(embedder, rows.of_lesson(lesson, PATH, None)[:1])[0]


def _candidates(
    vault: Vault, text: str, vector: np.ndarray | None
) -> Iterator[tuple[dict[str, Any], float]]:
    """Yield the lessons that have most of the words of a text, and those nearest to a vector.

    Each with its cosine, 0 without a vector. They are asked for by row: a search, and a filter of
    their ids, take three times as long.
    """
    import numpy as np

    store = vault.open_index().store
    listed = store.matches(query.searched(text), CANDIDATES, None)[0].tolist()
    if vector is not None:
        near, likeness = store.nearest(vector, NEAREST_ROWS, None)
        listed += near[np.argsort(-likeness)[:NEAREST_ROWS]].tolist()
    ids = list(dict.fromkeys(listed))
    cosines = np.zeros(len(ids))
    if vector is not None:
        cosines = store.cosines(np.array(ids, np.uint64), vector)
    for row, cosine in zip(store.take(ids), cosines.tolist(), strict=True):
        if row["is_whole"] and not row["withheld"]:
            yield row, cosine
