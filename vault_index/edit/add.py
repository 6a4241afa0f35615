"""Put lessons into a vault: files that a person could have written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vault_index import check, files
from vault_index.errors import VaultError
from vault_index.lesson import category, edits, markdown, parse

if TYPE_CHECKING:
    from vault_index.vault import Vault

First = Callable[[Path, bytes], None]


def write(
    vault: Vault,
    source: bytes,
    *,
    title: str = "",
    categories: Sequence[str] = (),
    tags: Sequence[str] = (),
    type: str = "",
    first: First | None = None,
) -> Path:
    """Write a lesson file where its category says, and return its path.

    `source` is markdown with or without frontmatter; the other values are set in its frontmatter,
    and `created` if it is missing. `first` gets the path and the content before a byte is written.
    Raises LessonError, WriteError, and VaultError if it has no text
    or what `lessons check` calls an error, the file exists, or its folder is in another
    git repository.
    """
    wanted: dict[str, Any] = {"title": title, "tags": list(tags), "type": type}
    filed = [path for path in map(category.normalise, categories) if path]
    if type and type not in parse.TYPES:
        raise VaultError(f"no type {type!r}", f"choose one of {', '.join(parse.TYPES)}")
    wanted["categories"] = filed if len(filed) > 1 else None
    parsed = parse.parse_file(edits.set_keys(source, _given(wanted)), "new.md")
    if not parsed or not any(lesson.text for lesson in parsed):
        raise VaultError("a lesson needs some text", "pipe it in, or name a file that has some")
    if parsed[0].created is None:
        wanted["created"] = datetime.now(UTC).replace(microsecond=0)
    data = edits.set_keys(source, _given(wanted))
    path = place_of(vault, data, title=title, categories=filed)
    files.refuse_other_repository(path.parent, vault.lessons_dir)
    data = data if data.endswith(b"\n") else data + b"\n"
    check.refuse_errors(str(path.relative_to(vault.lessons_dir)), data)
    if first is not None:
        first(path, data)
    if not files.create_file(path, data, within=vault.root):
        where = path.relative_to(vault.root)
        raise VaultError(f"{where} is there already", "edit it, or give another --title")
    return path


def place_of(
    vault: Vault, source: bytes, *, title: str = "", categories: Sequence[str] = ()
) -> Path:
    """Return the path where `write` puts a lesson. Raises LessonError, VaultError without a title."""
    parsed = parse.parse_file(source, "new.md")[0]
    named = title or parsed.title
    if not title and named == "new":
        raise VaultError("a lesson needs a title", "pass --title, or begin with `# Title`")
    filed = [path for path in map(category.normalise, [*categories, *parsed.categories]) if path]
    name = markdown.slugify(named) or "lesson"
    return vault.lessons_dir.joinpath(*(filed[0].split("/") if filed else []), f"{name}.md")


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value}


def from_json_lines(vault: Vault, lines: Sequence[tuple[int, dict[str, Any]]]) -> int:
    """Write lessons given as JSON objects (id, title, text, category) as files; return their number.

    For a vault that is only measured. Raises VaultError with the line for an object that is not a lesson.
    """
    for number, values in lines:
        name = "/".join(filter(None, map(markdown.slugify, str(values.get("id", "")).split("/"))))
        if not name or not isinstance(values.get("text"), str):
            raise VaultError(f"line {number}: not a lesson", "write id, title, text and category")
        keys = {"id": values["id"], "title": values.get("title") or name}
        keys["categories"] = [values["category"]] if values.get("category") else None
        data = edits.set_keys(f"---\n---\n{values['text']}\n".encode(), _given(keys))
        path = vault.lessons_dir / f"{name}.md"
        files.refuse_links(path.parent, vault.root)
        with files.writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            files.replace_file(path, data)
    return len(lines)
