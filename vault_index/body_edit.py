"""Change the text of a lesson in its file, or take it out, and leave every other byte as it was."""

from __future__ import annotations

from dataclasses import dataclass

from vault_index.errors import LessonError
from vault_index.lesson import (
    BOM,
    decode,
    fenced,
    free_slug,
    heading_of,
    is_boundary,
    lines_of,
    parse_file,
    says_something,
    section_of,
    split_frontmatter,
)


@dataclass(frozen=True, slots=True)
class _Part:
    """Lines of a file: `title` is the line of the heading, or None; the text follows up to `end`."""

    slug: str  # "" for what stands before the first section
    title: int | None
    start: int
    end: int


def set_text(data: bytes, slug: str, text: str | None, title: str | None, path: str) -> bytes:
    """Give a file's bytes with another text, or title, of a lesson; None leaves either as it is.

    `slug` names the section, "" the lesson before the first one. The title of that is changed where
    it is a heading; that in the frontmatter is for `frontmatter_edit`. Raises LessonError for what
    would not read back as it is meant: text that begins a lesson, or swallows the next one.
    """
    if text is None and title is None:
        return data
    bom, newline, lines = _lines(data, path)
    part = _find(lines, slug, path)
    if title is not None and part.title is not None:
        old = lines[part.title]
        mark = "## Lesson: " if slug else f"{old[: len(old) - len(old.lstrip('#'))]} "
        closing = " #" if title.endswith("#") else ""  # else its own last # would be one
        lines[part.title] = f"{mark}{title}{closing}{newline}"
    if text is not None:
        body = text.replace("\r\n", "\n").strip("\n").split("\n")
        blank = [newline] if part.title is not None else []
        more = [newline] if part.end < len(lines) else []
        lines[part.start : part.end] = [*blank, *(line + newline for line in body), *more]
    after = (bom + "".join(lines)).encode()
    _check(data, after, slug, text, path)
    return after


def without(data: bytes, slug: str, path: str) -> bytes | None:
    """Give a file's bytes without a lesson; None if none is left. Raises LessonError.

    Of the lesson before the first section the heading stays: it is the title of the file.
    """
    bom, _, lines = _lines(data, path)
    part = _find(lines, slug, path)
    if slug and part.title is not None:
        del lines[part.title : part.end]
    else:
        lines[part.start : part.end] = lines[part.start : part.start + (part.title is not None)]
    after = (bom + "".join(lines)).encode()
    body = split_frontmatter("".join(lines), path)[1]
    sections = any("#" in one.id for one in parse_file(after, path))
    return after if sections or says_something(body) else None


def _check(before: bytes, after: bytes, slug: str, text: str | None, path: str) -> None:
    """Raise LessonError if an edit did anything else than what it should."""
    old, new = parse_file(before, path), parse_file(after, path)
    at = [number for number, one in enumerate(old) if one.id.partition("#")[2] == slug]
    others = [
        [(one.title, one.text) for number, one in enumerate(some) if number not in at]
        for some in (old, new)
    ]
    wanted = None if text is None else text.replace("\r\n", "\n").strip()
    if others[0] != others[1] or (wanted is not None and new[at[0]].text != wanted):
        hint = "close its code fences, and let no line of it be `## Lesson:` or ---"
        raise LessonError(f"{path}: this text would not stay one lesson", 0, hint)


def _lines(data: bytes, path: str) -> tuple[str, str, list[str]]:
    text = decode(data, path)
    newline = "\r\n" if "\r\n" in text[: text.find("\n") + 1] else "\n"
    lines = lines_of(text)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += newline
    return (BOM if data.startswith(BOM.encode()) else ""), newline, lines


def _find(lines: list[str], slug: str, path: str) -> _Part:
    found = next((part for part in _parts(lines, path) if part.slug == slug), None)
    if found is None:
        raise LessonError(f"{path}: no section {slug!r}", 0, "`lessons list` shows the ids")
    return found


def _parts(lines: list[str], path: str) -> list[_Part]:
    """Give what stands before the first section, and the sections."""
    first = next((number for number, line in enumerate(lines) if line.strip()), 0)
    begin = 0
    if lines and is_boundary(lines[first].strip()):
        closing = (n for n, line in enumerate(lines) if n > first and is_boundary(line))
        begin = next(closing, first - 1) + 1
    plain = [line.rstrip("\r\n") for line in lines[begin:]]
    marks = [
        (begin + number, section_of(line))
        for number, (line, inside) in enumerate(zip(plain, fenced(plain), strict=True))
        if not inside and section_of(line) is not None
    ]
    ends = [*(number for number, _ in marks), len(lines)]
    head = next((n for n in range(begin, ends[0]) if lines[n].strip()), None)
    known = parse_file("".join(lines).encode(), path)
    title = next((one.document or one.title for one in known), "")
    if head is not None and heading_of(lines[head].rstrip("\r\n")) != title:
        head = None  # a heading of the text: the title is the frontmatter's
    parts = [_Part("", head, begin if head is None else head + 1, ends[0])]
    taken: dict[str, int] = {}
    for number, (mark, named) in enumerate(marks):
        slug = free_slug(named or "Lesson", taken)
        parts.append(_Part(slug, mark, mark + 1, ends[number + 1]))
    return parts
