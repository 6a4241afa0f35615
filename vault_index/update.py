"""Change a lesson in its file: what is not named stays, to the byte."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vault_index import body_edit, check, files, frontmatter_edit, get, lesson
from vault_index import categories as tree
from vault_index.errors import VaultError
from vault_index.lesson import TYPES

if TYPE_CHECKING:
    from vault_index.vault import Vault


def write(
    vault: Vault,
    name: str,
    *,
    title: str | None = None,
    text: str | None = None,
    categories: Sequence[str] | None = None,
    tags: Sequence[str] | None = None,
    type: str | None = None,
    confidence: int | None = None,
) -> Path:
    """Change a lesson and give its file's path. What is None stays as it is; an empty list goes.

    `name` is its id, its path, or the end of either. Of a section only title and text are its own:
    the frontmatter is its whole file's. The index knows at its next sync.

    Raises VaultError for an unknown name or type, LessonError for a file that cannot be edited,
    WriteError.
    """
    found = get.entry(vault, name)
    slug = found["id"].rpartition("#")[2] if "#" in found["id"] else ""
    if type and type not in TYPES:
        raise VaultError(f"no type {type!r}", f"one of: {', '.join(TYPES)}")
    if confidence is not None and not 1 <= confidence <= 5:
        raise VaultError(f"confidence is 1 to 5, not {confidence}")
    if text is not None and not text.strip():
        raise VaultError("a lesson needs some text", f"`lessons rm {name}` deletes it")
    if title is not None:
        title = " ".join(title.split())
        if not title:
            raise VaultError("a lesson needs a title")
    file = vault.root / found["path"]
    data = before = get.content(vault, found)
    known = frontmatter_edit.keys_of(data, found["path"])
    keys: dict[str, Any] = {}
    if categories is not None:
        keys["categories"] = [one for one in map(tree.normalise, categories) if one] or None
        if "category" in known:
            keys["category"] = None
    if tags is not None:
        keys["tags"] = list(tags) or None
    if type is not None:
        keys["type"] = type or None
    if confidence is not None:
        keys["confidence"] = confidence
    if title is not None and not slug and ("title" in known or not _has_heading(data, found)):
        keys["title"] = title
    data = body_edit.set_text(data, slug, text, title, found["path"])
    data = frontmatter_edit.set_keys(data, keys, found["path"])
    if data != before:
        check.refuse_errors(found["path"].partition("/")[2], data, before)
        files.change_file(file, data, expected=before, within=vault.root)
    return file


def _has_heading(data: bytes, found: get.Entry) -> bool:
    """Tell whether the title of a file's lesson is its first heading."""
    body = lesson.split_frontmatter(lesson.decode(data, found["path"]), found["path"])[1]
    return lesson.heading_of(body.strip().partition("\n")[0]) == found["title"]
