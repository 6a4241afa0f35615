"""Foreign files read as drafts of lesson files: bytes in, bytes out, nothing is written.

Each reader takes a file's bytes and its path, and returns drafts. It raises LessonError, with the
line, and then returns none: a file with one malformed part is not half imported. Only of JSON lines,
where each is a lesson by itself, the good ones are kept and each bad one is an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

from vault_index.errors import LessonError
from vault_index.formats.bullets import read_bullets
from vault_index.formats.course import TITLE, read_course
from vault_index.formats.draft import Draft
from vault_index.formats.json_lines import read_json_lines
from vault_index.formats.markdown_files import read_markdown
from vault_index.formats.obsidian import looks_like_obsidian, read_obsidian
from vault_index.lesson import BOM, parse_file

__all__ = ["FORMATS", "Draft", "guess", "read", "read_good"]

_WHOLE: Mapping[str, Callable[[bytes, str], list[Draft]]] = MappingProxyType(
    {
        "markdown": read_markdown,
        "bullets": read_bullets,
        "course": read_course,
        "obsidian": read_obsidian,
    }
)
FORMATS = (*_WHOLE, "jsonl")

_INSTRUCTIONS = (
    "claude.md",
    "claude.local.md",
    "agents.md",
    "gemini.md",
    ".cursorrules",
    "copilot-instructions.md",
)
_SECTION = re.compile(r"^##[ \t]+Lesson:", re.MULTILINE)


def guess(data: bytes, path: str) -> str:
    """Tell which format a file is in, by its name and its beginning: a key of FORMATS."""
    name = path.rpartition("/")[2].lower()
    if name.endswith((".jsonl", ".ndjson", ".json")):
        return "jsonl"
    if name in _INSTRUCTIONS:
        return "bullets"
    text = data.decode("utf-8", "replace").lstrip(BOM).replace("\r\n", "\n")
    start = text.lstrip()
    if start.startswith(f"{TITLE}:"):
        return "course"
    if path == "-" and re.match(r"\{|\[\s*\{", start):
        return "jsonl"
    if name.endswith(".md") and not _SECTION.search(text) and looks_like_obsidian(text):
        return "obsidian"
    return "markdown"


def read(data: bytes, path: str, format: str = "") -> list[Draft]:
    """Read a file as drafts, in the order they stand; without a `format` it is guessed.

    `path` is relative to the imported folder, `-` for standard input. Raises LessonError, with the
    path and the line, for a file that is malformed in any part, and for an unknown format.
    """
    drafts, errors = read_good(data, path, format)
    if errors:
        raise errors[0]
    return drafts


def read_good(data: bytes, path: str, format: str = "") -> tuple[list[Draft], list[LessonError]]:
    """Read a file as `read` does; return what can be imported and the errors, in order of lines."""
    format = format or guess(data, path)
    if format not in FORMATS:
        unknown = LessonError(f"{path}: no format {format!r}", 1, f"one of: {', '.join(FORMATS)}")
        return [], [unknown]
    if format == "jsonl":
        drafts, errors = read_json_lines(data, path)
    else:
        try:
            drafts, errors = _WHOLE[format](data, path), []
        except LessonError as error:
            return [], [error]
    good = []
    for draft in drafts:
        try:
            parse_file(draft.data, path)
            good.append(draft)
        except LessonError as error:  # only what can be read back is a draft
            errors.append(LessonError(error.message, draft.line, error.hint))
    if errors and format != "jsonl":
        good = []
    return good, sorted(errors, key=lambda error: error.line)
