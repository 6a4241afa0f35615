"""Questions about what a vault holds as a whole: its documents, and lessons in numbers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from vault_index.api.question import question
from vault_index.search.contents import count, counted
from vault_index.search.documents import Part, parts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vault_index.vault import Vault

DOCUMENT, COURSE = "document", "course"
_FIELDS = ("path", "title", "description", "link", "author", "likeness")


@question
def select(vault: Vault, name: str = "") -> dict[str, Any]:
    """List the `documents` by title; with a `name` those that may be called so, or the nearest.

    Each has `kind` (document | course), `path`, `title`, `description`, `link`, `author`, the number
    of its `lessons`, and the `likeness` of its name (0..2).
    """
    listed = [
        {
            "kind": COURSE if is_course else DOCUMENT,
            **{field: getattr(document, field) for field in _FIELDS},
            "lessons": lessons,
        }
        for document, lessons, is_course in counted(vault, name)
    ]
    return {"documents": listed}


@question
def contents(vault: Vault, path: str) -> dict[str, Any]:
    """List the `lessons` of a document in their order: `id`, `title`, `number` or None, `link`."""
    return {"lessons": _shown(parts(vault, [path])[path])}


@question
def courses(vault: Vault) -> dict[str, Any]:
    """List the `courses` by title: `path`, `link`, `author`, and their `lessons` as `contents` does."""
    listed = [document for document, _, is_course in counted(vault) if is_course]
    lessons = parts(vault, [document.path for document in listed])
    fields = ("title", "path", "link", "author")
    return {
        "courses": [
            {field: getattr(document, field) for field in fields}
            | {"lessons": _shown(lessons[document.path])}
            for document in listed
        ]
    }


@question
def overview(vault: Vault) -> dict[str, Any]:
    """Return the vault in numbers: see `search.contents.count`."""
    return count(vault, datetime.now(UTC).date())


def _shown(lessons: Iterable[Part]) -> list[dict[str, Any]]:
    """Return what hooks do not leave out."""
    fields = ("number", "title", "link", "id")
    return [
        {field: getattr(part, field) for field in fields}
        for part in lessons
        if not part.is_withheld
    ]
