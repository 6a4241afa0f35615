"""Change, confirm or delete a lesson in its file: the rest of the file stays, to the byte."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict, Unpack

from vault_index import check, files
from vault_index.check import harmless
from vault_index.edit import ingest
from vault_index.edit.add import First
from vault_index.edit.formats.lesson_file import first_sentence
from vault_index.errors import ChangedError, VaultError
from vault_index.lesson import category, edits
from vault_index.lesson.file import OWN_KEYS, LessonFile
from vault_index.lesson.parse import TYPES
from vault_index.retrieval import entries
from vault_index.retrieval.hit import WholeEntry
from vault_index.vault import Vault


class LessonChanges(TypedDict, total=False):
    """The changes of a lesson.

    None leaves a value as it is; an empty list removes it, and so does a confidence of 0.
    """

    title: str | None
    text: str | None
    tags: Sequence[str] | None
    type: str | None
    confidence: int | None
    categories: Sequence[str] | None
    source: str | None
    prompts: Sequence[str] | None
    fires_on: Sequence[str] | None
    silent_on: Sequence[str] | None
    fires_on_error: Sequence[str] | None
    applies_to: Sequence[str] | None


def write(
    vault: Vault,
    name: str,
    *,
    shown: WholeEntry | None = None,
    unchanged: bool = False,
    first: First | None = None,
    **changes: Unpack[LessonChanges],
) -> Path:
    """Change a lesson and return its file's path.

    `name` is its id, its path, or the end of either, and `shown` its entry for a caller that has it:
    with `unchanged` a lesson whose title or text differs from the entry stays as it is.
    `first` gets the path and the content of its file before a byte is written.
    A section has its own title, text and `file.OWN_KEYS`; other keys belong to the whole file.
    The index knows at its next sync.

    Raises VaultError for an unknown name or type, LessonError for a file that cannot be edited,
    WriteError.
    """
    entry = shown or entries.entry(vault, name)
    slug = entry.id.partition("#")[2]
    keys: dict[str, Any] = {key: changes.get(key) for key in LessonChanges.__annotations__}
    title, text = keys.pop("title"), keys.pop("text")
    title = None if title is None else " ".join(title.split())
    _refuse(name, title, text, keys["type"], keys["confidence"])
    has_categories = keys["categories"] is not None
    data = before = entries.content(vault, entry, unchanged=unchanged)
    if has_categories:
        keys["categories"] = list(filter(None, map(category.normalise, keys["categories"])))
    if keys["source"] is not None:
        keys["source"] = " ".join(keys["source"].split())
    # an empty value removes its key
    keys = {key: value or None for key, value in keys.items() if value is not None}
    texts = (None, None) if slug else (title, text)
    keys |= _replaced(data, entry, has_categories, *texts)
    data = edits.set_text(data, slug, text, title, entry.path)
    slug = slug and edits.id_after(entry.id, before, data).partition("#")[2]
    return put(vault, entry.path, with_keys(data, slug, keys, entry.path), before, first)


def with_keys(data: bytes, slug: str, keys: Mapping[str, Any], path: str) -> bytes:
    """Return a file's bytes with keys of a lesson; those that its section may have below its heading.

    A key that the section is not to have, and its file has, is empty there. Raises LessonError.
    """
    of_section = {key: value for key, value in keys.items() if slug and key in OWN_KEYS}
    if of_section:
        shared = edits.keys_of(data, path)
        is_filed = "categories" in shared or "category" in shared
        for key, value in of_section.items():
            if value is None and (is_filed if key == "categories" else key in shared):
                of_section[key] = "" if key in ("type", "category") else []
        data = edits.set_own_keys(data, slug, of_section, path)
    return edits.set_keys(
        data, {key: value for key, value in keys.items() if key not in of_section}, path
    )


def _replaced(
    data: bytes, entry: WholeEntry, has_categories: bool, title: str | None, text: str | None
) -> dict[str, Any]:
    """Return the keys that change with others: an older `category`, a title made from the text."""
    declared = edits.keys_of(data, entry.path)
    keys: dict[str, Any] = {}
    if has_categories and "category" in declared and "#" not in entry.id:
        keys["category"] = None
    file = LessonFile.of(data, entry.path)
    first = category.heading_of(file.text(file.body).strip().partition("\n")[0])
    if title is not None and ("title" in declared or first != entry.title):
        keys["title"] = title
    was_made = declared.get("title") == first_sentence(entry.text)
    if text is not None and title is None and was_made:
        heading = category.heading_of(text.strip().partition("\n")[0])
        keys["title"] = heading or first_sentence(text)
    return keys


@dataclass(frozen=True, slots=True)
class SentText:
    """A text that a program sends, for a lesson of this id; "" for a new one."""

    text: str
    id: str = ""
    categories: Sequence[str] = ()
    source: str = ""


@dataclass(frozen=True, slots=True)
class Put:
    """A lesson as it was written, which is on the disk; or the `error` with it."""

    id: str
    status: str = ""  # ingested | updated
    categories: Sequence[str] = ()
    error: VaultError | None = None


def put_item(
    vault: Vault, item: SentText, categories: Mapping[str, Sequence[str]], *, only_new: bool
) -> Put:
    """Put an item into a lesson. `categories` are of existing lessons, by id."""
    id, text, filed, source = item.id, item.text, item.categories, item.source
    try:
        if id not in categories:
            new_id, _, filed = ingest.ingest(vault, text, id=id, categories=filed, source=source)
            return Put(new_id, "ingested", filed)
        if only_new:
            hint = "choose another id, or change that lesson"
            raise ChangedError(f"there is a lesson {id!r}", hint)
        file = write(vault, id, text=text, categories=filed or None, source=source or None)
        files.make_durable(file, within=vault.root)
    except VaultError as error:
        return Put(id, error=error)
    return Put(id, "updated", filed or categories[id])


def put(vault: Vault, path: str, data: bytes, before: bytes, first: First | None = None) -> Path:
    """Write a lesson file, named from the vault's root, that is as it was `before`; return its place.

    Raises VaultError for an error that it did not have before, ChangedError if it was saved
    meanwhile, WriteError.
    """
    file = vault.root / path
    if data != before:
        data = harmless.with_line(data, path)
        check.refuse_errors(path.partition("/")[2], data, before)
        if first is not None:
            first(file, data)
        files.change_file(file, data, expected=before, within=vault.root)
    return file


def _refuse(
    name: str, title: str | None, text: str | None, type: str | None, confidence: int | None
) -> None:
    if type and type not in TYPES:
        raise VaultError(f"no type {type!r}", f"choose one of {', '.join(TYPES)}")
    if confidence and not 1 <= confidence <= 5:
        raise VaultError(f"confidence is 1 to 5, not {confidence}")
    if text is not None and not text.strip():
        raise VaultError("a lesson needs some text", f"delete it with `lessons rm {name}`")
    if title == "":
        raise VaultError("a lesson needs a title")


ONLY_PERSONS = "only a person can say that what looks like a secret is none"
