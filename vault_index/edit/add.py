"""Put lessons into a vault: files that a person could have written."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from vault_index import check, files
from vault_index.check import harmless
from vault_index.edit.formats.lesson_file import first_sentence
from vault_index.errors import VaultError
from vault_index.lesson import category, edits, parse
from vault_index.vault import Vault

First = Callable[[Path, bytes], None]
_UNTITLED = "new"  # the title that a file without one gets


def write(
    vault: Vault,
    source: bytes,
    *,
    title: str = "",
    categories: Sequence[str] = (),
    type: str = "",
    first: First | None = None,
    **keys: Any,
) -> Path:
    """Write a lesson file where its category says, and return its path.

    `source` is markdown with or without frontmatter; the other values are set in its frontmatter,
    `created` if it is missing, and without a title its first sentence as one; `keys` are tags,
    confidence, applies_to and prompts. `first` gets the path and the content before a byte is written.
    Raises LessonError, WriteError, and VaultError if it has no text or what `lessons check` calls an
    error, the file exists, or its folder is in another git repository.
    """
    if title and not (title := title.strip()):
        raise VaultError("a lesson needs a title", "pass --title with some words")
    wanted: dict[str, Any] = {"title": title, "type": type}
    wanted |= {key: list(each) if isinstance(each, tuple) else each for key, each in keys.items()}
    filed = [category.checked_folder(each) for each in categories if category.normalise(each)]
    if type and type not in parse.TYPES:
        raise VaultError(f"no type {type!r}", f"choose one of {', '.join(parse.TYPES)}")
    wanted["categories"] = filed if len(filed) > 1 else None
    parsed = parse.parse_file(edits.set_keys(source, without_empty(wanted)), f"{_UNTITLED}.md")
    if not parsed or not any(lesson.text for lesson in parsed):
        raise VaultError("a lesson needs some text", "pipe it in, or name a file that has some")
    if not title and parsed[0].title == _UNTITLED:
        title = wanted["title"] = first_sentence(parsed[0].text)
    if parsed[0].created is None:
        wanted["created"] = datetime.now(UTC).replace(microsecond=0)
    data = edits.set_keys(source, without_empty(wanted))
    path = place_of(vault, data, title=title, categories=filed)
    data = data if data.endswith(b"\n") else data + b"\n"
    if not create(vault, path, data, first):
        raise _is_there(vault, path)
    return path


def refuse_existing(vault: Vault, path: Path) -> None:
    """Raise VaultError for a path of the vault that is there, also for a link to nothing."""
    if os.path.lexists(path):
        raise _is_there(vault, path)


def _is_there(vault: Vault, path: Path) -> VaultError:
    where = path.relative_to(vault.root)
    return VaultError(f"{where} is there already", "edit it, or choose another --title")


def create(vault: Vault, path: Path, data: bytes, first: First | None = None) -> bool:
    """Write the file of a new lesson; False if there is one. Raises VaultError, WriteError."""
    files.refuse_other_repository(path.parent, vault.lessons_dir)
    data = harmless.with_line(data, str(path.relative_to(vault.lessons_dir)))
    check.refuse_errors(str(path.relative_to(vault.lessons_dir)), data)
    if first is not None:
        first(path, data)
    return files.create_file(path, data, within=vault.root)


def place_of(
    vault: Vault, source: bytes, *, title: str = "", categories: Sequence[str] = ()
) -> Path:
    """Return the path to which `write` puts a lesson. Raises LessonError, VaultError without a title."""
    lessons = parse.parse_file(source, f"{_UNTITLED}.md")
    named = title or lessons[0].title
    if not title and named == _UNTITLED:
        raise VaultError("a lesson needs a title", "pass --title, or begin with `# Title`")
    filed = list(filter(None, map(category.normalise, categories)))
    filed = filed or category.of_file([each.categories for each in lessons])
    name = category.slugify(named) or "lesson"
    return vault.place_for("".join(filed[:1]), name)


def without_empty(values: dict[str, Any]) -> dict[str, Any]:
    """Return keys of a frontmatter without those that have no value."""
    return {key: value for key, value in values.items() if value}


def from_json_lines(vault: Vault, lines: Sequence[tuple[int, dict[str, Any]]]) -> int:
    """Write lessons given as JSON objects (id, title, text, category) as files; return their number.

    For a vault that is only measured. Raises VaultError with the line for an object that is not a lesson.
    """
    for number, values in lines:
        name = "/".join(filter(None, map(category.slugify, str(values.get("id", "")).split("/"))))
        if not name or not isinstance(values.get("text"), str):
            raise VaultError(f"line {number}: not a lesson", "write id, title, text and category")
        keys = {"id": values["id"], "title": values.get("title") or name}
        keys["categories"] = [values["category"]] if values.get("category") else None
        keys |= {name: values.get(name) for name in ("prompts", "fires_on_error")}
        data = edits.new_file(values["text"], without_empty(keys))
        path = vault.lessons_dir / f"{name}.md"
        files.refuse_links(path.parent, vault.root)
        with files.writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            files.replace_file(path, data)
    return len(lines)
