"""Change the text of a lesson in its file, or remove it, and leave every other byte as it was."""

from __future__ import annotations

from dataclasses import dataclass

from vault_index.errors import LessonError
from vault_index.lesson.file import LessonFile
from vault_index.lesson.markdown import has_text, heading_of
from vault_index.lesson.parse import parse_file, slugs_of


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a lesson is in its file: the line of its heading, if it has one, and those of its text."""

    heading: int | None
    text: range


def set_text(data: bytes, slug: str, text: str | None, title: str | None, path: str) -> bytes:
    """Return a file's bytes with another text, or title, of a lesson; None leaves either as it is.

    `slug` names the section, "" the lesson above the first one. The title of that is changed where
    it is a heading; `edit_frontmatter` changes one in the frontmatter. Raises LessonError for text
    that would not read back as the lesson's: it begins another lesson, or swallows the next one.
    """
    if text is None and title is None:
        return data
    file = _ended(LessonFile.of(data, path))
    place, newline, lines = _place_of(file, slug), file.newline, list(file.lines)
    if title is not None and place.heading is not None:
        old = lines[place.heading]
        mark = "## Lesson: " if slug else f"{old[: len(old) - len(old.lstrip('#'))]} "
        closing = " #" if title.endswith("#") else ""  # else its own last # would be one
        lines[place.heading] = f"{mark}{title}{closing}{newline}"
    if text is not None:
        body = text.replace("\r\n", "\n").strip("\n").split("\n")
        above = [newline] if place.heading is not None else []
        below = [newline] if place.text.stop < len(lines) else []
        lines[place.text.start : place.text.stop] = [
            *above, *(line + newline for line in body), *below
        ]  # fmt: skip
    after = LessonFile.of_lines(lines, path, file.bom).to_bytes()
    _check(data, after, slug, text, path)
    return after


def without(data: bytes, slug: str, path: str) -> bytes | None:
    """Return a file's bytes without a lesson; None if no lesson remains. Raises LessonError.

    Above the first section, a heading and the line below it stay: it is the title of the file.
    """
    file = _ended(LessonFile.of(data, path))
    place, lines = _place_of(file, slug), list(file.lines)
    start = place.text.start
    if place.heading is not None:
        start = place.heading if slug else start + 1
    del lines[start : place.text.stop]
    after = LessonFile.of_lines(lines, path, file.bom)
    parse_file(after.to_bytes(), path)
    return after.to_bytes() if after.sections or has_text(after.text(after.body)) else None


def _check(before: bytes, after: bytes, slug: str, text: str | None, path: str) -> None:
    """Raise LessonError if an edit changed anything but its lesson."""
    old, new = parse_file(before, path), parse_file(after, path)
    edited = [number for number, lesson in enumerate(old) if lesson.id.partition("#")[2] == slug]
    others = [
        [(lesson.title, lesson.text) for number, lesson in enumerate(side) if number not in edited]
        for side in (old, new)
    ]
    wanted = None if text is None else text.replace("\r\n", "\n").strip()
    if others[0] != others[1] or (wanted is not None and new[edited[0]].text != wanted):
        hint = "close its code fences and comments, and begin no line with `## Lesson:` or ---"
        raise LessonError(f"{path}: this text would not stay one lesson", 0, hint)


def _ended(file: LessonFile) -> LessonFile:
    """Return a file whose last line has an end."""
    if not file.lines or file.lines[-1].endswith("\n"):
        return file
    lines = [*file.lines[:-1], file.lines[-1] + file.newline]
    return LessonFile.of_lines(lines, file.path, file.bom)


def _place_of(file: LessonFile, slug: str) -> _Place:
    """Find a section, or with "" the lesson above the first one. Raises LessonError."""
    if not slug:
        return _above_sections(file)
    for name, section in slugs_of(file):
        if name == slug:
            return _Place(section.heading, range(section.heading + 1, section.end))
    raise LessonError(f"{file.path}: no section {slug!r}", 0, "see the ids with `lessons list`")


def _above_sections(file: LessonFile) -> _Place:
    """Return the place of the lesson above the sections; only a heading with its title is its heading."""
    span = file.preamble
    heading = next((number for number in span if file.lines[number].strip()), None)
    lessons = parse_file(file.to_bytes(), file.path)
    title = next((lesson.document or lesson.title for lesson in lessons), "")
    if heading is None or heading_of(file.lines[heading].rstrip("\r\n")) != title:
        return _Place(None, span)  # a heading of the text: the title is the frontmatter's
    return _Place(heading, range(heading + 1, span.stop))
