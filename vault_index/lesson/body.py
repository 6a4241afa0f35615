"""The text of a lesson without reading the YAML before it, which takes as long as Python to start."""

from __future__ import annotations

from vault_index.lesson.file import LessonFile
from vault_index.lesson.markdown import heading_of
from vault_index.lesson.parse import slugs_of

MAX_TITLE_CHARS = 1000  # as long a title may be cut


def text_of(data: bytes, path: str, slug: str, title: str) -> str | None:
    """Return the text of a lesson in a file that parses; None where the file has to be parsed.

    `slug` names a section, "" the lesson above the first one. `title` is the lesson's, by which the
    first heading is a part of the text or not.
    """
    if len(title) >= MAX_TITLE_CHARS:
        return None
    file = LessonFile.of(data, path)
    if slug:
        spans = (range(part.heading + 1, part.end) for name, part in slugs_of(file) if name == slug)
        return next((file.text(span).strip() for span in spans), None)
    body = file.text(file.preamble).strip()
    first, _, rest = body.partition("\n")
    heading = heading_of(first)
    return rest.strip() if heading and heading == title else body
