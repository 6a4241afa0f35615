"""What is around a lesson: the others of its file, and those that are most like it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vault_index.search import query
from vault_index.search.options import Query
from vault_index.store import filters
from vault_index.store.manifest import NO_EMBEDDER

if TYPE_CHECKING:
    import numpy as np

    from vault_index.search.entries import Entry
    from vault_index.vault import Vault

CANDIDATES = 64  # passages, of which several may be of the same lesson
LAST = 1 << 31


def of_file(vault: Vault, path: str) -> list[dict[str, Any]]:
    """List the lessons of a file, named from the vault's root, in their order: `id` and `title`."""
    columns = ("lesson_id", "title", "position")
    places: dict[str, tuple[int, str]] = {}
    for row in vault.open_index().store.rows(columns, filters.of_paths([path])):
        # a whole lesson that also has pieces has no place of its own
        place = row["position"] if row["position"] >= 0 else LAST
        places[row["lesson_id"]] = min(
            (place, row["title"]), places.get(row["lesson_id"], (LAST, ""))
        )
    ordered = sorted(places.items(), key=lambda item: (item[1][0], item[0]))
    return [{"id": id, "title": title} for id, (_, title) in ordered]


def nearest(vault: Vault, entry: Entry, most: int) -> list[dict[str, Any]]:
    """List the lessons that are most like one, without withheld ones: `id`, `title`, `likeness`.

    The likeness is a cosine. Without an embedder it is None, and the words of the title decide.
    """
    vector = _vector(vault, entry["id"])
    if vector is None:
        asked = Query(entry["title"], most + 1, for_agent=True, text_only=True)
        hits = query.run(vault, asked).hits
        alike: list[dict[str, Any]] = [
            {"id": hit.lesson_id, "title": hit.title, "likeness": None} for hit in hits
        ]
    else:
        store = vault.open_index().store
        ids, cosines = store.nearest(vector, CANDIDATES, None)
        best = (-cosines).argsort()[:CANDIDATES]
        alike = [
            {"id": row["lesson_id"], "title": row["title"], "likeness": float(cosines[number])}
            for number, row in zip(best, store.take(ids[best].tolist()), strict=True)
            if row["is_whole"] and not row["withheld"]
        ]
    return [other for other in alike if other["id"] != entry["id"]][:most]


def _vector(vault: Vault, id: str) -> np.ndarray | None:
    """Return the vector of a lesson as the index has it; None where it has none."""
    opened = vault.open_index()
    if opened.embedder == NO_EMBEDDER:
        return None
    rows = opened.store.rows(("content_hash",), filters.wholes_of([id]))
    vectors = opened.store.vectors([row["content_hash"] for row in rows])
    return next(iter(vectors.values()), None)
