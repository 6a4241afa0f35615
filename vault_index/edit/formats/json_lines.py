"""JSON lines: each line is an object and a lesson; an array of objects works, too."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from vault_index.edit.formats.lesson_file import (
    Draft,
    cut,
    file_of,
    first_sentence,
    has_body,
    name_of,
    numbered,
    one_lesson,
    text_of,
    unix_lines,
)
from vault_index.errors import LessonError
from vault_index.lesson import category
from vault_index.lesson.category import heading_of
from vault_index.lesson.frontmatter import MAX_NESTING

_TEXT_KEYS = ("text", "content", "body", "lesson")
_FILED = ("category", "categories")
_NOT_JSON = "write an object a line, or one array of objects"


@dataclass(frozen=True, slots=True)
class _Entry:
    """The parts of one object, and where it is: `place` is its name in an error."""

    place: str
    line: int
    id: str
    title: str
    text: str
    categories: tuple[str, ...]
    others: dict[str, Any]


def read_json_lines(data: bytes, path: str) -> tuple[list[Draft], list[LessonError]]:
    """Read a file of JSON objects; duplicate names within a category get -2, -3.

    Return the drafts, and an error with its line for each part without a JSON object or text.
    For a file that does not begin with JSON and has nothing to import, only the first error.
    """
    entries: list[_Entry] = []
    errors: list[LessonError] = []
    try:
        values = list(_values(data, path))
    except LessonError as error:
        return [], [error]
    for place, line, value in values:
        try:
            if isinstance(value, LessonError):
                raise value
            entries.append(_entry(value, place, line))
        except LessonError as error:
            errors.append(error)
    if errors and not entries and errors[0].hint == _NOT_JSON:
        return [], errors[:1]
    nameless = [
        Draft(name_of(each.id.rpartition("/")[2], each.title), each.categories, b"", each.line)
        for each in entries
    ]
    drafts = []
    ids: set[str] = set()
    for entry, draft in zip(entries, numbered(nameless), strict=True):
        written = _file(entry, draft.name, entry.id not in ids)
        ids.add(entry.id)
        drafts.append(Draft(draft.name, draft.categories, written, draft.line))
    return drafts, errors


def _values(data: bytes, path: str) -> Iterator[tuple[str, int, Any]]:
    """Yield the values of an array or of lines, with their names in an error and their lines.

    A line that is not JSON yields its LessonError. Raises LessonError for such an array.
    """
    text = text_of(data, path)
    if text.lstrip().startswith("["):
        try:
            values = _json(text, path, 1)
        except LessonError:
            if not _is_json(text.partition("\n")[0]):
                raise
        else:
            for number, value in enumerate(values, start=1):
                yield f"{path}: object {number}", 1, value
            return
    for line, written in enumerate(text.split("\n"), start=1):
        if written.strip():
            try:
                yield path, line, _json(written, path, line)
            except LessonError as error:
                yield path, line, error


def _is_json(written: str) -> bool:
    try:
        _json(written, "", 1)
    except LessonError:
        return False
    return True


def _json(written: str, path: str, line: int) -> Any:
    try:
        value = json.loads(written)
        if "\\ud" in written.lower():  # half a surrogate pair is JSON, but not text
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise LessonError(
            f"{path}: not JSON: {error.msg}",
            line + min(error.lineno - 1, written.rstrip().count("\n")),
            _NOT_JSON,
        ) from None
    except UnicodeEncodeError:
        raise LessonError(f"{path}: half a surrogate pair, which is no character", line) from None
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits, 10,000 brackets
        raise LessonError(f"{path}: not usable JSON: {error}", line) from None
    return value


def _entry(value: Any, place: str, line: int) -> _Entry:
    """Take an object apart. Raises LessonError for an object that makes no lesson."""
    if not isinstance(value, dict):
        raise LessonError(f"{place}: a {type(value).__name__}, not a JSON object", line)
    if _deeper(value, MAX_NESTING):
        raise LessonError(f"{place}: nested deeper than {MAX_NESTING}", line)
    values = {key: item for key, item in value.items() if item is not None}
    key = next((key for key in _TEXT_KEYS if key in values), "text")
    text = _string(values, key, place, line)
    if not has_body(text):
        raise LessonError(
            f"{place}: no text", line, f"put its text under one of {', '.join(_TEXT_KEYS)}"
        )
    if "\0" in text:
        raise LessonError(f"{place}: a NUL character in {key!r}", line)
    first = text.strip().partition("\n")[0]
    title = " ".join(_string(values, "title", place, line).split())
    return _Entry(
        place=place,
        line=line,
        id=" ".join(_string(values, "id", place, line).split()),
        title=title or cut(heading_of(first)) or first_sentence(text) or "Lesson",
        text=unix_lines(text),
        categories=_filed(values, place, line),
        others={k: item for k, item in values.items() if k not in ("id", "title", key, *_FILED)},
    )


def _file(entry: _Entry, name: str, is_first: bool) -> bytes:
    """Write the file. Only the first of an id declares it: a lesson's id is its own."""
    keys: dict[str, Any] = {}
    in_folder = entry.categories[0] if entry.categories else None
    if is_first and entry.id and entry.id != f"{in_folder}/{name}":  # else the path says it
        keys["id"] = entry.id
    keys["title"] = entry.title
    if len(entry.categories) > 1:
        keys["categories"] = list(entry.categories)
    return file_of(keys | entry.others, one_lesson(entry.text))


def _string(values: dict[str, Any], key: str, place: str, line: int) -> str:
    """Return a text; an id may be a whole number."""
    value = values.get(key, "")
    if not isinstance(value, str) and (key != "id" or type(value) is not int):
        raise LessonError(f"{place}: {key!r} is a {type(value).__name__}, not a string", line)
    return str(value)


def _filed(values: dict[str, Any], place: str, line: int) -> tuple[str, ...]:
    """Return the categories, normalised: from a string (`a, b` has two) or a list of strings."""
    named: list[str] = []
    for key in _FILED:
        value = values.get(key, [])
        parts = value.split(",") if isinstance(value, str) else value
        if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
            raise LessonError(f"{place}: {key!r} is neither a string nor a list of them", line)
        named += parts
    return tuple(dict.fromkeys(filter(None, map(category.normalise, named))))


def _deeper(value: Any, left: int) -> bool:
    """Whether lists and objects are nested deeper than `left` levels."""
    if not isinstance(value, (dict, list)):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return left == 0 or any(_deeper(item, left - 1) for item in inner)
