"""The lessons around a lesson, those of each document in their order, and how many there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from vault_index.index.documents import DOCUMENT
from vault_index.lesson import category
from vault_index.lesson.category import COURSES
from vault_index.search import documents, query, taught
from vault_index.search.query import Query
from vault_index.store import filters

if TYPE_CHECKING:
    from vault_index.search.documents import Document
    from vault_index.search.entries import Entry
    from vault_index.vault import Vault

COURSE = "course"


def counted(vault: Vault, name: str = "") -> list[Document]:
    """Return the documents with the number of their lessons; the `kind` of a course is COURSE.

    With a `name`, also half remembered or not typed to its end, they are those that may be called so, the
    likeliest first, and without any the nearest; else all, sorted by title. Lessons that hooks leave out
    are not among them. Raises IndexStateError without an index.
    """
    name = name.strip()
    store = vault.open_index().store
    shared = filters.all_of(filters.WHOLE, filters.FOR_AGENTS)
    lessons = store.tally("path", shared)
    is_course = filters.all_of(shared, f"({filters.NUMBERED}) OR ({filters.below([COURSES])})")
    kinds = dict.fromkeys(store.tally("path", is_course), COURSE)
    places = documents.near(vault, name) if name else documents.places(vault)
    kept = [place for place in places if place.kind == DOCUMENT and lessons.get(place.path)]
    if name:
        least = documents.least_likeness(vault)
        typed = name.lower()
        meant = [place for place in kept if place.likeness >= least or typed in place.title.lower()]
        kept = meant or kept[: documents.SHOWN]
    else:
        kept.sort(key=lambda place: (place.title.lower(), place.path))
    return [
        replace(place, kind=kinds.get(place.path, DOCUMENT), lessons=lessons[place.path])
        for place in kept
    ]


# A vault in numbers: how many lessons and documents there are, of which categories, since when.

MAX_DAYS = 3 * 365  # of growth
MAX_AUTHORS = 20  # those with most lessons
_COUNTED = ("path", "categories", "created_at", "updated_at")


def count(vault: Vault, today: date) -> dict[str, Any]:
    """Count `lessons`, `documents`, `categories`, `types`, `authors`, and the `growth`.

    A category has its `path`, and the `lessons` and `documents` in and below it. `types` and `authors`
    are [name, lessons], most first, "" for those without; `other_authors` have so many lessons
    together. `growth` is as `_growth` returns it. Raises IndexStateError without an index.
    """
    store = vault.open_index().store
    lessons = store.rows(_COUNTED, filters.WHOLE)
    places = documents.places(vault)
    filed: dict[str, set[str]] = {each.path: set() for each in places if each.kind == DOCUMENT}
    for row in lessons:
        if row["path"] in filed:
            filed[row["path"]].update(row["categories"] or ())
    in_categories = category.counts(filed.values())
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
        "growth": _growth((row["created_at"] or row["updated_at"] for row in lessons), today),
    }


def _ordered(tally: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(tally.items(), key=lambda item: (-item[1], item[0] or ""))


def _growth(moments: Iterable[datetime | None], today: date) -> dict[str, Any]:
    """Return the `days` on which lessons were new, oldest first, and today.

    A day has its date as `day`, how many were `new` and how many there are in `all` at its end. Days
    before the first of the last MAX_DAYS are in its `all` alone; `undated` have no date, or one that
    is to come.
    """
    dates = [moment.date() if moment else None for moment in moments]
    past = Counter(day for day in dates if day and day <= today)
    first = max(min(past, default=today), today - timedelta(days=MAX_DAYS))
    total = sum(count for day, count in past.items() if day < first)
    days = []
    for day in sorted({first, *(day for day in past if day > first), today}):
        total += past[day]
        days.append({"day": day.isoformat(), "new": past[day], "all": total})
    return {"days": days, "undated": len(dates) - past.total()}


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
