"""The text of a lesson without reading the YAML before it, which takes as long as Python to start."""

from __future__ import annotations

import re

from vault_index import lesson

MOST_TITLE_CHARS = 1000  # as long a title may be cut

_BOUNDARY = re.compile(r"^-{3,}\s*$", re.MULTILINE)  # as python-frontmatter's


def text_of(data: bytes, path: str, slug: str, title: str) -> str | None:
    """Return the text of a lesson in a file that parses; None where the file has to be parsed.

    `slug` names a section, "" the lesson before the first one. `title` is the lesson's, which tells
    whether the first heading is a part of the text.
    """
    if len(title) >= MOST_TITLE_CHARS:
        return None
    preamble, sections = lesson.sections_of(body_of(lesson.decode(data, path)))
    if slug:
        taken: dict[str, int] = {}
        texts = (text for head, text in sections if lesson.free_slug(head, taken) == slug)
        return next(texts, None)
    body = preamble.strip()
    first, _, rest = body.partition("\n")
    heading = lesson.heading_of(first)
    return rest.strip() if heading and heading == title else body


def body_of(text: str) -> str:
    """Return what is after the frontmatter, as `lesson.split_frontmatter` does for text that parses."""
    text = text.replace("\r\n", "\n").strip()
    first, _, rest = text.partition("\n")
    if not lesson.is_boundary(first) or not any(map(lesson.is_boundary, lesson.lines_of(rest))):
        return text
    return _BOUNDARY.split(text, maxsplit=2)[2].strip()
