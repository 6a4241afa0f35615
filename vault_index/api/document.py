"""Questions about what a vault holds as a whole: its courses, and lessons in numbers."""

from __future__ import annotations

from datetime import UTC, datetime

from vault_index.api.question import question
from vault_index.search import documents
from vault_index.search.documents import Course, CourseLesson, Overview
from vault_index.vault import Vault


@question
def courses(vault: Vault) -> tuple[Course, ...]:
    """List the courses by title, with their lessons."""
    listed = documents.courses(vault)
    every = documents.parts(vault, [each.path for each in listed])
    found = []
    for each in listed:
        about = each.path, each.title, each.link, each.author
        lessons = tuple(
            CourseLesson(part.number, part.title, part.link, part.id)
            for part in every[each.path]
            if not part.is_withheld
        )
        found.append(Course(*about, lessons, len(lessons)))
    return tuple(found)


@question
def overview(vault: Vault) -> Overview:
    """Return the vault in numbers."""
    return documents.count(vault, datetime.now(UTC).date())
