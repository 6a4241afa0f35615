"""Questions about what a vault holds as a whole: its documents, and lessons in numbers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from vault_index.api.question import question
from vault_index.search.contents import COURSE, count, counted
from vault_index.search.documents import Document, Part, parts
from vault_index.vault import Vault


@dataclass(frozen=True, slots=True)
class Course:
    """A document whose lessons have numbers."""

    path: str
    title: str
    link: str
    author: str
    lessons: tuple[Part, ...]


@question
def select(vault: Vault, name: str = "") -> tuple[Document, ...]:
    """List the documents by title; with a `name` those that may be called so, or the nearest."""
    return tuple(counted(vault, name))


@question
def contents(vault: Vault, path: str) -> tuple[Part, ...]:
    """List the lessons of a document in their order."""
    return _for_agents(parts(vault, [path])[path])


@question
def courses(vault: Vault) -> tuple[Course, ...]:
    """List the courses by title, with their lessons."""
    listed = [document for document in counted(vault) if document.kind == COURSE]
    lessons = parts(vault, [each.path for each in listed])
    return tuple(
        Course(each.path, each.title, each.link, each.author, _for_agents(lessons[each.path]))
        for each in listed
    )


@question
def overview(vault: Vault) -> dict[str, Any]:
    """Return the vault in numbers: see `count`."""
    return count(vault, datetime.now(UTC).date())


def _for_agents(lessons: Iterable[Part]) -> tuple[Part, ...]:
    return tuple(part for part in lessons if not part.is_withheld)
