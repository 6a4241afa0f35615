"""Put texts that a program sends into a vault: each becomes a lesson file, as a person would write it.

A text is a text: what looks like frontmatter in it sets nothing. Its origin is noted as `source`, and
never read. The id that a program chooses is the lesson's; its file is in the folder of
the id, else in the folder of the first category.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from vault_index import files
from vault_index.edit import add
from vault_index.edit.formats.lesson_file import first_sentence, name_of
from vault_index.errors import ChangedError, VaultError
from vault_index.lesson import category, edits, parse
from vault_index.vault import Vault

MAX_ID_CHARS = 200
_PART = re.compile(r"\w[\w.+-]{0,80}")  # of an id: hidden files and `..` begin with a dot


def ingest(
    vault: Vault, text: str, *, id: str = "", categories: Sequence[str] = (), source: str = ""
) -> tuple[parse.LessonId, Path, list[str]]:
    """Write a text as a lesson file and wait for the disk; return its id, path and categories.

    Without an id the title makes the file's name: a heading, else the first sentence. Raises
    VaultError for a text or id that no lesson can have, ChangedError where there is a file already,
    WriteError.
    """
    filed = list(dict.fromkeys(map(category.checked, categories)))
    above, _, name = _stem(text, id, filed).rpartition("/")
    path = vault.place_for(above, name)
    below = path.relative_to(vault.lessons_dir).as_posix()
    folder = category.from_folder(below) or ""
    keys: dict[str, Any] = {"id": id if id and id != parse.id_of(below) else ""}
    if not category.heading_of(text.strip().partition("\n")[0]):
        keys["title"] = first_sentence(text) or id
    keys["categories"] = filed if filed and filed != [folder] else None
    keys["source"] = " ".join(source.split())
    keys["created"] = datetime.now(UTC).replace(microsecond=0)
    data = edits.new_file(text.strip(), add.without_empty(keys))
    lessons = parse.parse_file(data, below)
    if not any(lesson.text for lesson in lessons):
        raise VaultError("a lesson needs some text", "write more than a heading")
    if len(lessons) > 1 or "#" in lessons[0].id:
        raise VaultError(
            "a text with a line `## Lesson:` is several lessons", "split it, and add each by itself"
        )
    if not add.create(vault, path, data):
        where = path.relative_to(vault.root)
        raise ChangedError(f"{where} is there already", "choose another id, or change that lesson")
    files.make_durable(path, within=vault.root)
    by_folder = [folder] if folder and category.is_category(folder) else []
    return lessons[0].id, path, filed or by_folder


def _stem(text: str, id: str, filed: Sequence[str]) -> str:
    """Return the path of a new lesson's file without `.md`, from `lessons/`. Raises VaultError."""
    if not id:
        title = category.heading_of(text.strip().partition("\n")[0])
        return "/".join([*filed[:1], name_of(title, first_sentence(text))])
    parts = id.split("/")
    if len(id) > MAX_ID_CHARS or id.endswith(".md") or not all(map(_PART.fullmatch, parts)):
        raise VaultError(
            f"not an id: {id!r:.80}",
            "use letters, digits, `-`, `_` and `.`, and `/` between folders",
        )
    return id if len(parts) > 1 else "/".join([*filed[:1], id])
