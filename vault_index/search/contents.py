"""The lessons around a lesson, those of each document in their order, and how many there are."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

from vault_index.index.derived import DOCUMENT
from vault_index.lesson import category
from vault_index.lesson.category import COURSES
from vault_index.search import documents, query, taught
from vault_index.search.query import Query
from vault_index.store import filters

if TYPE_CHECKING:
    from vault_index.search.documents import Document
    from vault_index.search.entries import Entry
    from vault_index.vault import Vault


def courses(vault: Vault) -> list[Document]:
    """Return the documents with numbered lessons, by title.

    Lessons that hooks leave out are not among them. Raises IndexStateError without an index.
    """
    numbered = f"({filters.NUMBERED}) OR ({filters.below([COURSES])})"
    of_courses = filters.all_of(filters.WHOLE, filters.FOR_AGENTS, numbered)
    paths = vault.open_index().store.tally("path", of_courses)
    kept = [
        each for each in documents.places(vault) if each.kind == DOCUMENT and each.path in paths
    ]
    return sorted(kept, key=lambda place: (place.title.lower(), place.path))


# A vault in numbers: how many lessons and documents there are, of which categories, since when.

LATELY = timedelta(days=30)
MAX_AUTHORS = 20  # those with most lessons
_COUNTED = ("path", "categories", "created_at", "updated_at")


def count(vault: Vault, today: date) -> dict[str, Any]:
    """Count `lessons`, `documents`, `categories`, `types`, `authors`, and those that came `lately`.

    A category has its `path`, and the `lessons` and `documents` in and below it. `types` and `authors`
    are [name, lessons], most first, "" for those without; `other_authors` have so many lessons
    together. Raises IndexStateError without an index.
    """
    store = vault.open_index().store
    lessons = store.rows(_COUNTED, filters.WHOLE)
    places = documents.places(vault)
    filed: dict[str, set[str]] = {each.path: set() for each in places if each.kind == DOCUMENT}
    for row in lessons:
        if row["path"] in filed:
            filed[row["path"]].update(row["categories"] or ())
    in_categories = category.counts(filed.values())
    first, dates = today - LATELY, [row["created_at"] or row["updated_at"] for row in lessons]
    by_author = _ordered(store.tally("author", filters.WHOLE))
    return {
        "lessons": len(lessons),
        "documents": len(filed),
        "categories": [
            {"path": path, "lessons": count, "documents": in_categories.get(path, 0)}
            for path, count in category.counts(row["categories"] or () for row in lessons).items()
        ],
        "types": _ordered(store.tally("type", filters.WHOLE)),
        "authors": by_author[:MAX_AUTHORS],
        "other_authors": sum(count for _, count in by_author[MAX_AUTHORS:]),
        "lately": sum(day is not None and first <= day.date() <= today for day in dates),
    }


def _ordered(tally: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(tally.items(), key=lambda item: (-item[1], item[0] or ""))


# What is around a lesson: the others of its file, and those that are most like it.


def nearest(vault: Vault, entry: Entry, most: int) -> list[dict[str, Any]]:
    """List the lessons that are most like one, without withheld ones: `id`, `title`, `likeness`.

    The likeness is a cosine. Without an embedder it is None, and the words of the title decide.
    """
    vector = vault.open_index().store.of_lessons([entry["id"]]).get(entry["id"])
    if vector is None:
        asked = Query(entry["title"], most + 1, for_agent=True, text_only=True)
        hits = query.run(vault, asked).hits
        alike: list[dict[str, Any]]
        alike = [{"id": hit.lesson_id, "title": hit.title, "likeness": None} for hit in hits]
    else:
        alike = [
            {"id": row["lesson_id"], "title": row["title"], "likeness": likeness}
            for likeness, row in taught.nearest(vault, vector, -1.0)
            if not row["withheld"]
        ]
    return [each for each in alike if each["id"] != entry["id"]][:most]
