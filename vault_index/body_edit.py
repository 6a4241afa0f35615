"""Change the text of a lesson in its file, or take it out, and leave every other byte as it was."""

from __future__ import annotations

from dataclasses import dataclass

from vault_index.errors import LessonError
from vault_index.lesson import (
    BOM,
    HEADING,
    SECTION,
    decode,
    fenced,
    free_slug,
    is_boundary,
    lines_of,
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
    it is a heading; that in the frontmatter is for `frontmatter_edit`. Raises LessonError.
    """
    bom, newline, lines = _lines(data, path)
    part = _find(lines, slug, path)
    if title is not None and part.title is not None:
        mark = lines[part.title][: lines[part.title].index("# ") + 2] if not slug else "## Lesson: "
        lines[part.title] = f"{mark}{title}{newline}"
    if text is not None:
        body = text.strip("\n").replace("\r\n", "\n").split("\n")
        _refuse_sections(body, path)
        blank = [newline] if part.title is not None else []
        more = [newline] if part.end < len(lines) else []
        lines[part.start : part.end] = [*blank, *(line + newline for line in body), *more]
    return (bom + "".join(lines)).encode()


def without_section(data: bytes, slug: str, path: str) -> bytes | None:
    """Give a file's bytes without a section; None if no lesson is left. Raises LessonError."""
    bom, _, lines = _lines(data, path)
    part = _find(lines, slug, path)
    assert part.title is not None
    parts = _parts(lines)
    others = [one for one in parts if one.slug and one.slug != slug]
    before = "".join(lines[parts[0].start : parts[0].end]).strip()
    if not others and not before:
        return None
    del lines[part.title : part.end]
    return (bom + "".join(lines)).encode()


def _lines(data: bytes, path: str) -> tuple[str, str, list[str]]:
    text = decode(data, path)
    newline = "\r\n" if "\r\n" in text[: text.find("\n") + 1] else "\n"
    lines = lines_of(text)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += newline
    return (BOM if data.startswith(BOM.encode()) else ""), newline, lines


def _parts(lines: list[str]) -> list[_Part]:
    """Give what stands before the first section, and the sections."""
    first = next((number for number, line in enumerate(lines) if line.strip()), 0)
    begin = 0
    if lines and is_boundary(lines[first].strip()):
        closing = (n for n, line in enumerate(lines) if n > first and is_boundary(line))
        begin = next(closing, first - 1) + 1
    plain = [line.rstrip("\r\n") for line in lines[begin:]]
    marks = [
        begin + number
        for number, (line, inside) in enumerate(zip(plain, fenced(plain), strict=True))
        if not inside and SECTION.match(line)
    ]
    ends = [*marks, len(lines)]
    head = next((n for n in range(begin, ends[0]) if lines[n].strip()), None)
    if head is not None and not HEADING.match(lines[head].rstrip("\r\n")):
        head = None
    parts = [_Part("", head, begin if head is None else head + 1, ends[0])]
    taken: dict[str, int] = {}
    for number, mark in enumerate(marks):
        match = SECTION.match(lines[mark].rstrip("\r\n"))
        assert match
        slug = free_slug(match["title"] or "Lesson", taken)
        parts.append(_Part(slug, mark, mark + 1, ends[number + 1]))
    return parts


def _find(lines: list[str], slug: str, path: str) -> _Part:
    found = next((part for part in _parts(lines) if part.slug == slug), None)
    if found is None:
        raise LessonError(f"{path}: no section {slug!r}", 0, "`lessons list` shows the ids")
    return found


def _refuse_sections(body: list[str], path: str) -> None:
    for line, inside in zip(body, fenced(body), strict=True):
        if not inside and SECTION.match(line):
            raise LessonError(f"{path}: a text cannot begin a new lesson", 0, "add it by itself")
