"""Which sections of a file got another heading: seen from their text, as git finds renamed files.

Without it a section that both sides rename differently, or one renames and the other edits, would
look deleted and new, and a merge would keep its text twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from vault_index.lesson.file import lines_of

MIN_LIKENESS = 0.6  # of the characters of both texts, in lines that are the same

Sections = Mapping[str, str]  # heading -> text with the heading; "" for the text above the first


def undone(base: Sections, sides: Sequence[Sections]) -> list[dict[str, str]]:
    """Return for each of two sides the headings of the base that its renamed sections had.

    A rename to a heading that the other side gave to another section does not count: the two texts
    under one heading are a conflict, and both are kept.
    """
    pairs = [_pairs(base, side) for side in sides]
    undone: list[dict[str, str]] = []
    for mine, (other, others) in zip(
        pairs, ((sides[1], pairs[1]), (sides[0], pairs[0])), strict=True
    ):
        undone.append(
            {new: old for new, old in mine.items() if new not in other or others.get(new) == old}
        )
    return undone


def _pairs(base: Sections, side: Sections) -> dict[str, str]:
    """Pair new headings with those that disappeared, the most alike texts first."""
    gone = {name: _words(base[name]) for name in base if name not in side}
    new = {name: _words(side[name]) for name in side if name not in base}
    scores = sorted(
        (-_likeness(old_lines, new_lines), old, name)
        for old, old_lines in gone.items()
        for name, new_lines in new.items()
    )
    pairs: dict[str, str] = {}
    for score, old, name in scores:
        if -score >= MIN_LIKENESS and name not in pairs and old not in pairs.values():
            pairs[name] = old
    return pairs


def _words(text: str) -> Counter[str]:
    """Count the lines with a letter or digit, without the heading."""
    lines = [line.strip() for line in lines_of(text)]
    body = lines[1:] if lines and lines[0].startswith("## ") else lines
    return Counter(line for line in body if any(map(str.isalnum, line)))


def _likeness(text: Counter[str], other: Counter[str]) -> float:
    """Return how much of two texts is in lines that both have: 0..1."""
    both = 2 * _size(text & other)
    return both / (_size(text) + _size(other)) if both else 0.0


def _size(lines: Counter[str]) -> int:
    return sum(len(line) * count for line, count in lines.items())
