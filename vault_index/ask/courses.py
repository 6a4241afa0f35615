"""The courses of a vault: its documents with numbered lessons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vault_index.ask import numbered
from vault_index.index.documents import DOCUMENT
from vault_index.lesson import number
from vault_index.search import documents
from vault_index.store import filters

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vault_index.search.documents import Document
    from vault_index.vault import Vault

_COLUMNS = ("lesson_id", "path", "title", "text", "position", "is_whole", "withheld")


@dataclass(frozen=True, slots=True)
class CourseLesson:
    """A lesson of a course; `number` is None where it says none."""

    number: int | None
    title: str
    link: str
    id: str


@dataclass(frozen=True, slots=True)
class Course:
    """A document with numbered lessons, in their order."""

    title: str
    path: str  # of its file from the vault's root
    link: str
    author: str
    lessons: tuple[CourseLesson, ...]


def courses(vault: Vault) -> list[Course]:
    """Return the courses by title, without lessons that are withheld. Raises IndexStateError."""
    places = {each.path: each for each in documents.places(vault) if each.kind == DOCUMENT}
    by_path: dict[str, list[dict[str, Any]]] = {path: [] for path in places}
    where = filters.all_of(filters.of_paths(list(places)), filters.FOR_AGENTS)
    for row in vault.open_index().store.rows(_COLUMNS, where) if places else ():
        by_path[row["path"]].append(row)
    made = [_course(places[path], rows) for path, rows in by_path.items()]
    listed = [course for course in made if _is_numbered(course)]
    return sorted(listed, key=lambda course: (course.title.casefold(), course.path))


def _course(place: Document, rows: Sequence[Mapping[str, Any]]) -> Course:
    first: dict[str, int] = {}  # where each lesson begins among the passages of the file
    for row in rows:
        if row["position"] >= 0:
            before = first.get(row["lesson_id"], row["position"])
            first[row["lesson_id"]] = min(before, row["position"])
    wholes = [row for row in rows if row["is_whole"]]
    wholes.sort(key=lambda row: first.get(row["lesson_id"], 0))
    return Course(place.title, place.path, place.link, place.author, tuple(map(_lesson, wholes)))


def _lesson(row: Mapping[str, Any]) -> CourseLesson:
    text = row["text"] or ""
    own = number.number_of(text)
    label = numbered.label(row["title"], text)
    return CourseLesson(label, row["title"], own.link if own else "", row["lesson_id"])


def _is_numbered(course: Course) -> bool:
    return len(course.lessons) > 1 and any(each.number is not None for each in course.lessons)
