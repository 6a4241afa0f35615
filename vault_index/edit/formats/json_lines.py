"""JSON lines: each line is an object and a lesson; an array of objects works, too."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
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
)
from vault_index.errors import LessonError
from vault_index.lesson import category
from vault_index.lesson.category import heading_of
from vault_index.lesson.file import unix_lines
from vault_index.lesson.handler import MAX_NESTING
from vault_index.lesson.parse import parse_time

_TEXT_KEYS = ("text", "content", "body", "lesson")
_SAME = {  # keys of a lesson, and what other programs call them
    "created": ("created_at", "createdAt", "created_on", "date", "timestamp"),
    "source": ("source_file", "sourceFile", "source_path", "file", "url"),
}
_FILED = ("category", "categories")
_BLANKS = b"\xef\xbb\xbf \t\r\n"  # a byte-order mark, and white space
_NOT_JSON = "write an object a line, or one array of objects"


@dataclass(frozen=True, slots=True)
class _Entry:
    """The parts of one object: its draft without a file, and the content of the file."""

    draft: Draft
    id: str
    title: str
    text: str
    others: dict[str, Any]


def read_json_lines(data: bytes, path: str) -> tuple[list[Draft], list[LessonError]]:
    """Read a file of JSON objects; duplicate names within a category get -2, -3.

    Return the drafts, and an error with its line for each part without a JSON object or text.
    For a file that does not begin with JSON and has nothing to import, only the first error.
    """
    entries: list[_Entry] = []
    errors: list[LessonError] = []
    for prefix, line, value in _values(data, path):
        try:
            if isinstance(value, LessonError):
                line = value.line
                raise value
            entries.append(_entry(value, line))
        except LessonError as error:
            errors.append(LessonError(f"{prefix}{error.message}", line, error.hint))
    if errors and not entries and errors[0].hint == _NOT_JSON:
        return [], errors[:1]
    drafts = numbered(entry.draft for entry in entries)
    ids: set[str] = set()
    for number, (entry, draft) in enumerate(zip(entries, drafts, strict=True)):
        drafts[number] = replace(draft, data=_file(entry, draft, entry.id not in ids))
        ids.add(entry.id)
    return drafts, errors


def _values(data: bytes, path: str) -> Iterator[tuple[str, int, Any]]:
    """Yield values, with their names in an error and their lines; a bad line yields its LessonError.

    Raises LessonError for an array that is not JSON, or too long.
    """
    if data.lstrip(_BLANKS).startswith(b"["):
        text = text_of(data, path)
        whole = _json(text, 1)
        if isinstance(whole, list):
            for number, value in enumerate(whole, start=1):
                yield f"object {number}: ", 1, value
            return
        if isinstance(_json(text.partition("\n")[0], 1), LessonError):
            raise whole
    of_old_mac = b"\n" not in data  # within a string, JSON writes line ends as escapes
    for line, raw in enumerate(data.split(b"\r" if of_old_mac else b"\n"), start=1):
        try:
            written = text_of(raw, path)
            if written.strip():
                yield "", line, _json(written, line)
        except LessonError as error:
            yield "", line, LessonError(error.message.removeprefix(f"{path}: "), line, error.hint)


def _json(written: str, line: int) -> Any:
    try:
        value = json.loads(written)
        if "\\ud" in written.lower():  # half a surrogate pair is JSON, but not text
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        error_line = line + min(error.lineno - 1, written.rstrip().count("\n"))
        return LessonError(f"not JSON: {error.msg}", error_line, _NOT_JSON)
    except UnicodeEncodeError:
        return LessonError("half a surrogate pair, which is no character", line)
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits, 10,000 brackets
        return LessonError(f"not usable JSON: {error}", line)
    return value


def _entry(value: Any, line: int) -> _Entry:
    """Take an object apart. Raises LessonError, without its place, if it makes no lesson."""
    if not isinstance(value, dict):
        raise LessonError(f"a {type(value).__name__}, not a JSON object")
    if _deeper(value, MAX_NESTING):
        raise LessonError(f"nested deeper than {MAX_NESTING}")
    values = {key: item for key, item in value.items() if item is not None}
    key = next((key for key in _TEXT_KEYS if key in values), "text")
    text = _string(values, key)
    if not has_body(text):
        raise LessonError("no text", hint=f"put its text under one of {', '.join(_TEXT_KEYS)}")
    if "\0" in text:
        raise LessonError(f"a NUL character in {key!r}")
    title = " ".join(_string(values, "title").split())
    title = title or cut(heading_of(text.strip().partition("\n")[0])) or first_sentence(text)
    id = " ".join(_string(values, "id").split())
    name = name_of(id.rpartition("/")[2], title or "Lesson")
    others = {k: item for k, item in values.items() if k not in ("id", "title", key, *_FILED)}
    for wanted, names in _SAME.items():
        alias = next((each for each in names if each in others), "")
        if alias and wanted not in others and (wanted == "source" or parse_time(others[alias])):
            others = {wanted if k == alias else k: item for k, item in others.items()}
    draft = Draft(name, _filed(values), b"", line)
    return _Entry(draft, id, title or "Lesson", unix_lines(text), others)


def _file(entry: _Entry, draft: Draft, is_first: bool) -> bytes:
    """Write the file. Only the first of an id declares it: a lesson's id is its own."""
    keys: dict[str, Any] = {}
    folder = draft.categories[0] if draft.categories else None
    if is_first and entry.id and entry.id != f"{folder}/{draft.name}":  # else the path says it
        keys["id"] = entry.id
    keys["title"] = entry.title
    if len(draft.categories) > 1:
        keys["categories"] = list(draft.categories)
    return file_of(keys | entry.others, one_lesson(entry.text))


def _string(values: dict[str, Any], key: str) -> str:
    value = values.get(key, "")
    if not isinstance(value, str) and (key != "id" or type(value) is not int):
        raise LessonError(f"{key!r} is a {type(value).__name__}, not a string")
    return str(value)


def _filed(values: dict[str, Any]) -> tuple[str, ...]:
    named: list[str] = []
    for key in _FILED:
        value = values.get(key, [])
        parts = value.split(",") if isinstance(value, str) else value
        if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
            raise LessonError(f"{key!r} is neither a string nor a list of them")
        named += parts
    return tuple(dict.fromkeys(filter(None, map(category.normalise, named))))


def _deeper(value: Any, levels: int) -> bool:
    if not isinstance(value, (dict, list)):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_deeper(item, levels - 1) for item in inner)
