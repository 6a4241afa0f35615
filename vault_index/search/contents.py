"""What documents hold: how many lessons, and which, in their order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vault_index.index.documents import DOCUMENT
from vault_index.lesson import number
from vault_index.lesson.category import COURSES
from vault_index.search import documents
from vault_index.store import filters

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vault_index.search.documents import Document
    from vault_index.vault import Vault

_COLUMNS = ("lesson_id", "path", "title", "text", "position", "is_whole", "withheld")


@dataclass(frozen=True, slots=True)
class Part:
    """A lesson of a document; `number` is None where it says none."""

    id: str
    title: str
    number: int | None
    link: str
    is_withheld: bool


def counted(vault: Vault, name: str = "") -> list[tuple[Document, int, bool]]:
    """Return the documents, each with how many lessons it has, and whether it is a course.

    With a `name`, also half remembered or not typed to its end, they are those that may be called so,
    the likeliest first, and without any the nearest; else all, sorted by title. What hooks leave out
    is not among them. Raises IndexStateError without an index.
    """
    name = name.strip()
    store = vault.open_index().store
    shared = filters.all_of(filters.WHOLE, filters.FOR_AGENTS)
    lessons = store.tally("path", shared)
    is_course = filters.all_of(shared, f"({filters.NUMBERED}) OR ({filters.below([COURSES])})")
    courses = store.tally("path", is_course)
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


def parts(vault: Vault, paths: Sequence[str]) -> dict[str, list[Part]]:
    """Return the lessons of each document in their order, none for a path that is none.

    What hooks leave out is among them. Raises IndexStateError without an index.
    """
    rows = vault.open_index().store.rows(_COLUMNS, filters.of_paths(paths)) if paths else ()
    first: dict[str, int] = {}  # where each lesson begins among the passages of its file
    wholes: dict[str, list[Mapping[str, Any]]] = {path: [] for path in paths}
    for row in rows:
        id = row["lesson_id"]
        if row["position"] >= 0:  # that of a whole with pieces is none
            first[id] = min(row["position"], first.get(id, row["position"]))
        if row["is_whole"]:
            wholes[row["path"]].append(row)

    def order(row: Mapping[str, Any]) -> tuple[int, str]:
        return first.get(row["lesson_id"], 0), row["lesson_id"]

    return {path: [_part(row) for row in sorted(own, key=order)] for path, own in wholes.items()}


def _part(row: Mapping[str, Any]) -> Part:
    text = row["text"] or ""
    own = number.number_of(text)
    label = number.label(row["title"], text)
    link = own.link if own else ""
    return Part(row["lesson_id"], row["title"], label, link, bool(row["withheld"]))
