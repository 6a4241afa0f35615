"""How a lesson of an imported course begins: with its number, and its link where it has one.

[Lesson 3](https://example.com/3)        Lesson 3
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_FIRST = re.compile(
    r"(?:\[Lesson (?P<linked>[0-9]{1,9})\]\((?:<(?P<link>[^<>\n]*)>|(?P<bare>[^()<>\s]*))\)"
    r"|Lesson (?P<number>[0-9]{1,9})(?=\s*\n|\s*\Z))\s*"
)
# as people number their headings
_TITLE = re.compile(r"(?i)(?:lesson|chapter|part|unit)?\s*(?P<number>\d{1,9})\s*(?:[.:)]|$)")


@dataclass(frozen=True, slots=True)
class Number:
    """The number of a lesson; its text goes on after `end` characters."""

    number: int
    link: str
    end: int


def number_of(text: str) -> Number | None:
    """Return the number that a text begins with, None for any other text."""
    match = _FIRST.match(text)
    if match is None:
        return None
    link = match["link"] or match["bare"] or ""
    return Number(int(match["linked"] or match["number"]), link, match.end())


def label(title: str, text: str) -> int | None:
    """Return the number that a lesson says it has, in its text or its title; None if it says none."""
    own = number_of(text)
    if own is not None:
        return own.number
    match = _TITLE.match(title)
    return int(match["number"]) if match else None


def written(number: int, link: str) -> str:
    """Return the beginning of a lesson with a number."""
    if not link:
        return f"Lesson {number}"
    target = link.replace("<", "%3C").replace(">", "%3E")
    if re.search(r"[()\s]", target):
        target = f"<{target}>"
    return f"[Lesson {number}]({target})"
