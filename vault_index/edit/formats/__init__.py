"""Foreign files read as drafts of lesson files: bytes in, bytes out, nothing is written.

Each reader takes a file's bytes and its path, and returns drafts. It raises LessonError, with the
line, if a part is malformed: no file is half imported. Only of JSON lines the good ones come in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from vault_index.edit.formats.bullets import read_bullets
from vault_index.edit.formats.course import TITLE, looks_like_course, read_course
from vault_index.edit.formats.cursor import looks_like_rule, read_cursor
from vault_index.edit.formats.json_lines import read_json_lines
from vault_index.edit.formats.lesson_file import Draft, read_markdown
from vault_index.edit.formats.obsidian import has_sign, read_obsidian
from vault_index.edit.formats.okf import read_okf
from vault_index.errors import LessonError
from vault_index.lesson.category import SECTION
from vault_index.lesson.file import BOM, unix_lines
from vault_index.lesson.parse import parse_file

__all__ = ["FORMATS", "Draft", "guess", "read_good"]

_WHOLE: Mapping[str, Callable[[bytes, str], list[Draft]]] = {
    "markdown": read_markdown,
    "bullets": read_bullets,
    "cursor": read_cursor,
    "course": read_course,
    "obsidian": read_obsidian,
    "okf": read_okf,
}
FORMATS = (*_WHOLE, "jsonl")

_INSTRUCTIONS = frozenset(
    "claude.md claude.local.md agents.md gemini.md .cursorrules copilot-instructions.md".split()
)
_SECTION = re.compile(f"^{SECTION.pattern}", re.MULTILINE)


def guess(data: bytes, path: str) -> str:
    """Return the format of a file, a key of FORMATS, by its name and its beginning."""
    name = path.rpartition("/")[2].lower()
    if name.endswith((".jsonl", ".ndjson", ".json")):
        return "jsonl"
    if name in _INSTRUCTIONS:
        return "bullets"
    text = unix_lines(data.decode("utf-8", "replace")).lstrip(BOM)
    start = text.lstrip()
    if looks_like_rule(start, name):
        return "cursor"
    if start.startswith(f"{TITLE}:") or looks_like_course(start):
        return "course"
    if path == "-" and re.match(r"\{|\[\s*\{", start):
        return "jsonl"
    if name.endswith(".md") and not _SECTION.search(text) and has_sign(text):
        return "obsidian"
    return "markdown"


def read_good(data: bytes, path: str, format: str = "") -> tuple[list[Draft], list[LessonError]]:
    """Read a file as drafts, in their order; without a `format` it is guessed.

    `path` is relative to the imported folder, `-` for standard input. Return what can be imported, and
    the errors, which do not name the path, in order of lines.
    """
    format = format or guess(data, path)
    drafts: list[Draft] = []
    errors: list[LessonError] = []
    try:
        if format not in FORMATS:
            raise LessonError(f"no format {format!r}", 1, f"use one of {', '.join(FORMATS)}")
        if format == "jsonl":
            drafts, errors = read_json_lines(data, path)
        else:
            drafts = _WHOLE[format](data, path)
    except LessonError as error:
        errors = [error]
    good = []
    for draft in drafts:
        try:
            parse_file(draft.data, path)
            good.append(draft)
        except LessonError as error:  # only what can be read back is a draft
            errors.append(LessonError(error.message, draft.line, error.hint))
    if errors and format != "jsonl":
        good = []
    for each in errors:
        each.message = each.message.removeprefix(f"{path}: ")
    return good, sorted(errors, key=lambda error: error.line)
