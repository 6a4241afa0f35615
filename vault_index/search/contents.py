"""The lessons around a lesson, those of each document in their order, and how many there are."""

from __future__ import annotations

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


# A vault in numbers.

LATELY = timedelta(days=30)


def count(vault: Vault, today: date) -> dict[str, int]:
    """Count `lessons`, `documents`, `categories`, and the lessons that came `lately`.

    Raises IndexStateError without an index.
    """
    store = vault.open_index().store
    lessons = store.rows(("created_at", "updated_at"), filters.WHOLE)
    dates = [row["created_at"] or row["updated_at"] for row in lessons]
    filed = category.counts([each] for each in store.tally("categories", filters.WHOLE))
    return {
        "lessons": len(lessons),
        "documents": sum(each.kind == DOCUMENT for each in documents.places(vault)),
        "categories": len(filed),
        "lately": sum(day is not None and today - LATELY <= day.date() <= today for day in dates),
    }


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
