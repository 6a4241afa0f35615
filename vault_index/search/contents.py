"""What documents hold: how many lessons, and which, in their order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vault_index.index.documents import DOCUMENT
from vault_index.lesson import number
from vault_index.lesson.category import COURSES
from vault_index.search import documents
from vault_index.store import filters, totals

if TYPE_CHECKING:
    from vault_index.search.documents import Document
    from vault_index.vault import Vault

_COLUMNS = ("lesson_id", "title", "position", "is_whole")


@dataclass(frozen=True, slots=True)
class Part:
    """A lesson of a document. `number` and `link` are those that a course names for it."""

    id: str
    title: str
    number: int | None
    link: str


def counted(vault: Vault, name: str = "") -> list[tuple[Document, int, bool]]:
    """Return the documents, each with how many lessons it has, and whether it is a course.

    With a `name`, also half remembered or not typed to its end, they are those that may be called so,
    the likeliest first, and without any the nearest; else all, sorted by title. What hooks leave out
    is not among them. Raises IndexStateError without an index.
    """
    name = name.strip()
    store = vault.open_index().store
    shared = filters.all_of(filters.WHOLE, filters.FOR_AGENTS)
    lessons = totals.tally(store, "path", shared)
    is_course = filters.all_of(shared, f"({filters.NUMBERED}) OR ({filters.below([COURSES])})")
    courses = totals.tally(store, "path", is_course)
    places = documents.near(vault, name) if name else documents.places(vault)
    kept = [place for place in places if place.kind == DOCUMENT and lessons.get(place.path)]
    if name:
        least = documents.least_likeness(vault)
        typed = name.lower()
        meant = [place for place in kept if place.likeness >= least or typed in place.title.lower()]
        kept = meant or kept[: documents.SHOWN]
    else:
        kept.sort(key=lambda place: (place.title.lower(), place.path))
    return [(place, lessons[place.path], place.path in courses) for place in kept]


def parts(vault: Vault, path: str) -> Sequence[Part]:
    """Return the lessons of a document in their order, none for a path that is none.

    What hooks leave out is not among them. Raises IndexStateError without an index.
    """
    store = vault.open_index().store
    where = filters.all_of(filters.of_paths([path]), filters.FOR_AGENTS)
    places: dict[str, int] = {}
    listed: dict[str, Part] = {}
    for row in store.rows((*_COLUMNS, "text"), where):
        id = row["lesson_id"]
        if row["position"] >= 0:  # that of a whole with pieces is none
            places[id] = min(row["position"], places.get(id, row["position"]))
        if row["is_whole"]:
            own = number.number_of(row["text"])
            listed[id] = Part(
                id, row["title"], own.number if own else None, own.link if own else ""
            )
    return sorted(listed.values(), key=lambda part: (places.get(part.id, 0), part.id))
