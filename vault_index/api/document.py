"""Questions about what a vault holds as a whole: its courses, and lessons in numbers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from vault_index.api.question import question
from vault_index.search import documents
from vault_index.search.documents import Part, parts
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
def courses(vault: Vault) -> tuple[Course, ...]:
    """List the courses by title, with their lessons."""
    listed = documents.courses(vault)
    lessons = parts(vault, [each.path for each in listed])
    return tuple(
        Course(
            *(each.path, each.title, each.link, each.author),
            tuple(part for part in lessons[each.path] if not part.is_withheld),
        )
        for each in listed
    )


@question
def overview(vault: Vault) -> dict[str, int]:
    """Return the vault in numbers: see `documents.count`."""
    return documents.count(vault, datetime.now(UTC).date())
