"""Lines of markdown as far as lessons need them: headings, and names made of titles."""

from __future__ import annotations

import re

SECTION = re.compile(r"##[ \t]+Lesson:")
_HEADING = re.compile(r"#{1,6}[ \t]+(?=\S)")
_NOT_SLUG = re.compile(r"[^\w]+")


def slugify(title: str) -> str:
    """Make a file or section name of a title: `"Don't  retry POST"` -> `"don-t-retry-post"`."""
    return _NOT_SLUG.sub("-", title.lower()).strip("-_")[:80].rstrip("-_")


def heading_of(line: str) -> str:
    """Return the title of a heading without its marks; "" for any other line.

    `# Why C#` is "Why C#": a space comes before closing marks.
    """
    mark = _HEADING.match(line)
    return _unmarked(line[mark.end() :]) if mark else ""


def section_of(line: str) -> str | None:
    """Return the title in a line `## Lesson: title`; None for any other line."""
    mark = SECTION.match(line)
    return (_unmarked(line[mark.end() :]) or "Lesson") if mark else None


def has_text(preamble: str) -> bool:
    """Whether text above the first section is a lesson, and not only headings and blank lines."""
    return any(line.strip() and not heading_of(line) for line in preamble.split("\n"))


def free_slug(title: str, taken: dict[str, int]) -> str:
    """Make a section's name of its title: the first of `heap`, `heap-2`... that is free.

    `taken` maps each name so far to the number after which to look; the new name is added.
    """
    slug = base = slugify(title) or "lesson"
    number = taken.get(base, 1)
    while slug in taken:
        number += 1
        slug = f"{base}-{number}"
    taken[base] = number
    taken.setdefault(slug, 1)
    return slug


def _unmarked(title: str) -> str:
    """Remove closing marks from a heading; a regular expression would take quadratic time."""
    title = title.strip(" \t")
    bare = title.rstrip("#")
    return bare.rstrip(" \t") if bare.endswith((" ", "\t")) and bare.strip() else title
