"""Texts of lessons as they may be written into a skill's files: data, whatever they say.

In a SKILL.md an agent's program may run what is between `` !` `` and a backtick, fill in `$ARGUMENTS`,
and read in the file that a word names which begins with `@`. A heading of a lesson must not become one
of the file's; and what a lesson leaves open - a fence, a comment - must not swallow the next.
"""

from __future__ import annotations

import re

from vault_index.lesson import markdown
from vault_index.text import blocks
from vault_index.text.characters import clean

_HEADING = re.compile(r"(#{1,6})([ \t]+\S)")
_BELOW = 3  # headings of a reference that are above those of a lesson
_RUN = re.compile(r"!(?=`)")
_FILLED_IN = re.compile(r"\$(?=[A-Z0-9{])")
_READ_IN = re.compile(r"(?<!\w)@(?=[^\s@])")  # not the sign of an address: ada@example.org


def line(text: str, most: int = 300) -> str:
    """Return a text in one line for a SKILL.md, cut at a word."""
    plain = " ".join(clean(text).split())
    plain = _READ_IN.sub("@ ", _FILLED_IN.sub("$ ", _RUN.sub("! ", plain)))
    if plain.startswith(("#", "-", "*", "+", ">", "|", "=", "@")):
        plain = plain.lstrip("#-*+>|=@ ")
    return shortened(plain, most)


def phrase(text: str, most: int = 160) -> str:
    """Return a text for a description: in one line, and without angle brackets, which it may not have."""
    return line(text.replace("<", " ").replace(">", " "), most).replace('"', "'").rstrip(" .;:,")


def shortened(text: str, most: int) -> str:
    """Return a text of at most so many characters, cut at a word where it is longer."""
    if len(text) <= most:
        return text
    kept = text[: most - 3]
    return f"{kept.rpartition(' ')[0] or kept}..."


def part(text: str) -> str:
    """Return a part of a lesson's text for a reference: headings lowered, what is open closed."""
    lines = clean(text).strip("\n").split("\n")
    found = blocks.of_text("\n".join(lines))
    inside = blocks.flags(found, len(lines), blocks.CODE)
    shown = [
        each if is_code else _HEADING.sub(_lowered, each, count=1)
        for each, is_code in zip(lines, inside, strict=True)
    ]
    if found and found[-1].kind == blocks.FENCE and not found[-1].is_closed:
        shown.append(found[-1].mark)
    whole = "\n".join(shown).rstrip()
    return f"{whole}\n-->" if whole.rfind("<!--") > whole.rfind("-->") else whole


def with_examples(text: str) -> tuple[str, str]:
    """Split an explanation before its first block of code: the prose, and the examples."""
    lines = text.split("\n")
    first = next((each.start for each in blocks.of_text(text) if each.kind == blocks.FENCE), None)
    if first is None:
        return text, ""
    while first > 0 and not lines[first - 1].strip():
        first -= 1
    if first > 0 and lines[first - 1].rstrip().endswith(":"):  # what introduces it stays with it
        while first > 0 and lines[first - 1].strip():
            first -= 1
    return "\n".join(lines[:first]).strip(), "\n".join(lines[first:]).strip()


def anchor(heading: str) -> str:
    """Return the anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", markdown.heading_of(f"# {heading}").lower()).replace(" ", "-")


def _lowered(match: re.Match[str]) -> str:
    return "#" * min(6, len(match[1]) + _BELOW) + match[2]
