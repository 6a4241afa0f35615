"""A course in one text file: a few header lines, then `Lesson 0: ...`, `Lesson 1: ...`.

It becomes one lesson file with a `## Lesson:` section for each of its lessons.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from vault_index.edit.formats.lesson_file import Draft, file_of, name_of, one_lesson, text_of
from vault_index.errors import LessonError
from vault_index.lesson import passages
from vault_index.lesson.category import COURSES
from vault_index.lesson.file import LessonFile
from vault_index.text import blocks

TITLE = "Course Title"

_HEADERS = {TITLE: "title", "Course Link": "link", "Course Instructor": "author"}
_HEADER = re.compile(rf"(?P<key>{'|'.join(_HEADERS)}):(?P<value>.*)")
_LESSON = re.compile(r"Lesson[ \t]+(?P<number>[0-9]{1,9})[ \t]*:(?P<title>.*)")
_NO_HEADER = f"write `{TITLE}: ...` above it, or name another format with --as"
_BEGINNING = re.compile(
    rf"(?:{'|'.join(_HEADERS)}):|{_LESSON.pattern}\nLesson Link:", re.IGNORECASE
)
_LINK = re.compile(r"Lesson Link:(?P<link>.*)")


@dataclass(slots=True)
class _CourseLesson:
    """A lesson of the course while it is read; `line` is its heading's."""

    number: int
    title: str
    line: int
    link: str = ""
    text: list[str] = field(default_factory=list)


def looks_like_course(text: str) -> bool:
    """Whether a text without frontmatter is a course of which only the title can be missing.

    It begins as one, with a line of the header or a lesson with its link, or it numbers its lessons.
    """
    lines = [] if text.startswith("---") else text.split("\n")
    return bool(_BEGINNING.match(text)) or sum(bool(_LESSON.match(line)) for line in lines) > 1


def read_course(data: bytes, path: str) -> list[Draft]:
    """Read a course as one draft.

    Raises LessonError, with the line, for each way in which a course can be malformed.
    """
    lines = text_of(data, path).split("\n")
    start, header = _header(lines)
    parts = _parts(lines, start)
    for part in parts:
        if not "".join(part.text).strip():
            raise LessonError(f"lesson {part.number} has no text", part.line)
    keys = {_HEADERS[key]: value for key, value in header.items() if value}
    body = "\n\n".join(map(_section, parts))
    first = next(n for n, line in enumerate(lines, start=1) if line.strip())
    written = file_of({**keys, "categories": [COURSES]}, body)
    _refuse_open_html(written, parts)
    return [Draft(name_of(keys["title"], "course"), (COURSES,), written, first)]


def _header(lines: list[str]) -> tuple[int, dict[str, str]]:
    """Read the lines above the first lesson; return the index of that lesson's line, and them."""
    header: dict[str, str] = {}
    for n, line in enumerate(lines):
        if not line.strip():
            continue
        match = _HEADER.fullmatch(line.rstrip())
        if not header and not (match and match["key"] == TITLE):
            raise LessonError(f"a course begins with `{TITLE}:`", n + 1, _NO_HEADER)
        if _LESSON.match(line):
            return n, header
        if not match:
            hint = f"write only {', '.join(_HEADERS)} above `Lesson 0: ...`"
            raise LessonError("text before the first lesson", n + 1, hint)
        if match["key"] in header:
            raise LessonError(f"`{match['key']}:` a second time", n + 1)
        header[match["key"]] = " ".join(match["value"].split())
        if not header[TITLE]:
            raise LessonError(f"`{TITLE}:` is empty", n + 1)
    if not header:
        raise LessonError(f"a course begins with `{TITLE}:`", 1)
    last = max(n for n, line in enumerate(lines, start=1) if line.strip())
    raise LessonError("no lesson", last, "begin a lesson with `Lesson 0: Title`")


def _parts(lines: list[str], start: int) -> list[_CourseLesson]:
    """Cut the lines at the lessons' headings; a heading in a code fence is text."""
    fences = blocks.fences("\n".join(lines[start:]))
    parts: list[_CourseLesson] = []
    in_fence = blocks.flags(fences, len(lines) - start)
    for n, code in enumerate(in_fence, start=start):
        line = lines[n]
        heading = None if code else _LESSON.fullmatch(line.rstrip())
        link = None if code else _LINK.match(line)
        if heading:
            parts.append(_started(heading, parts, n + 1))
        elif link and n != parts[-1].line:  # lines count from 1, so this is the one below
            hint = "move it up, or put it into a code fence if it is text"
            raise LessonError("`Lesson Link:` is not directly below its lesson", n + 1, hint)
        elif link:
            parts[-1].link = link["link"].strip()
        else:
            parts[-1].text.append(line)
    for fence in fences:
        if not fence.is_closed:  # every lesson below it would be taken for code
            opened = start + fence.start + 1
            raise LessonError("a code fence is not closed", opened, "close it with ```")
    return parts


def _started(heading: re.Match[str], parts: list[_CourseLesson], line: int) -> _CourseLesson:
    number, title = int(heading["number"]), " ".join(heading["title"].split())
    if not title:
        raise LessonError(f"lesson {number} has no title", line)
    if parts and number == parts[-1].number:
        raise LessonError(f"lesson {number} a second time", line)
    if parts and number < parts[-1].number:
        raise LessonError(f"lesson {number} after lesson {parts[-1].number}", line)
    return _CourseLesson(number, title, line)


def _refuse_open_html(written: bytes, parts: list[_CourseLesson]) -> None:
    """Raise LessonError if a comment, or the like, of a lesson swallows the lesson below it."""
    titles = [section.title for section in LessonFile.of(written, "").sections]
    if len(titles) < len(parts):
        pairs = enumerate(zip(parts, titles, strict=False))
        lost = next((n for n, (part, title) in pairs if part.title != title), len(titles))
        part = parts[max(0, lost - 1)]
        hint = "close it, for example with -->"
        raise LessonError(f"HTML of lesson {part.number} is not closed", part.line, hint)


def _section(part: _CourseLesson) -> str:
    # a reader removes marks at the end of a heading: "C#" needs some more to keep its own
    title = f"{part.title} ##" if part.title.endswith("#") else part.title
    text = one_lesson("\n".join(part.text)).strip("\n").rstrip()
    return f"## Lesson: {title}\n\n{passages.number_line(part.number, part.link)}\n\n{text}"
