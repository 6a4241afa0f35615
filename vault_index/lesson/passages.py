"""A lesson cut into passages, the pieces that are embedded.

The first passage is the whole lesson. A long lesson has more, cut at the ends of sentences and never
inside a code fence, so that text beyond the embedder's reach is found too. Each begins with the end of
the one before it. Only fences count as code: loose lists look like indented code.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from vault_index.text import blocks

LONG_CHARS = 1600  # about 400 tokens: above that one vector no longer speaks for the whole
PIECE_CHARS = 800
OVERLAP_CHARS = 100
SHORT_CHARS = 300

_LINK = re.compile(r"!?\[([^\[\]\n]*)\]\([^)\[\n]{0,2000}\)")  # linear: `[](` may be repeated
_SPACE = re.compile(r"\s*")
_BLANK_LINES = re.compile(r"\n{2,}")
# up to a full stop, a blank line, or a line end before a list item, a heading, a quote or a table row
_SENTENCE = re.compile(
    r".+?(?:[.!?:][\"')\]*_`]*\s+|\n\s*\n\s*|\n(?=[ \t]*(?:[-*+>|#]|\d+[.)]))|\Z)", re.DOTALL
)


class _Piece(NamedTuple):
    """A passage, the number of its first unit (a sentence or fence), and the text it repeats before."""

    text: str
    start: int
    tail: str


def cut(text: str) -> list[str]:
    """Cut a lesson's markdown into passages: the whole, then pieces of at most 800 characters.

    A text of up to 1,600 characters is one passage. Each piece but the first repeats up to 100
    characters of the piece before. Only a code fence may be longer than a piece: it stays whole.
    """
    if len(text) <= LONG_CHARS:
        return [text]
    units = _units(text)
    pieces = _pack(units, PIECE_CHARS)
    if len(pieces) > 1 and len(pieces[-1].text) < SHORT_CHARS:
        # a short rest would be found for its brevity and say little: share with the piece before
        before = pieces[-2]
        rest = units[before.start :]
        half = sum(map(len, rest)) // 2 + OVERLAP_CHARS
        pieces[-2:] = _pack(rest, min(half, PIECE_CHARS), before.tail)
    return [text, *(piece.text for piece in pieces)]


def _pack(units: list[str], room: int, tail: str = "") -> list[_Piece]:
    pieces: list[_Piece] = []
    start, text = 0, tail
    for number, unit in enumerate(units):
        length = len(unit.rstrip())
        if text.strip() and text != tail and len(text) + length > room:
            pieces.append(_Piece(text.strip(), start, tail))
            start, text = number, _tail(text)
            tail = text
        if len(text) + length > room:
            text = tail = ""  # a fence that leaves no room for what it would repeat
        text += unit
    if text.strip() and text != tail:
        pieces.append(_Piece(text.strip(), start, tail))
    return pieces


def prose(text: str) -> str:
    """Return the sentences of a markdown text: no code fences, no link targets.

    People type sentences, not code: on the evaluation set the prose alone ranks better than the whole
    text. A text that is nothing but code is returned as it is.
    """
    pieces, position = [], 0
    for start, end in _fences(text):
        pieces.append(text[position:start])
        position = end
    without = _LINK.sub(r"\1", "".join([*pieces, text[position:]]))
    return _BLANK_LINES.sub("\n", without).strip() or text.strip()


def _fences(text: str) -> list[tuple[int, int]]:
    fences = blocks.fences(text)
    if not fences:
        return []
    starts = [0, *(match.end() for match in re.finditer("\n", text)), len(text) + 1]
    return [(starts[fence.start], starts[fence.end] - 1) for fence in fences]


def _units(text: str) -> list[str]:
    units: list[str] = []
    position = 0
    for start, end in _fences(text):
        units += _sentences(text[position:start])
        space = _SPACE.match(text, end)
        position = space.end() if space else end
        units.append(text[start:position])
    return units + _sentences(text[position:])


def _sentences(text: str) -> list[str]:
    units: list[str] = []
    for sentence in _SENTENCE.findall(text):
        while len(sentence.rstrip()) > PIECE_CHARS:
            end = max(sentence.rfind(space, PIECE_CHARS // 4, PIECE_CHARS) for space in " \n") + 1
            end = end or PIECE_CHARS
            units.append(sentence[:end])
            sentence = sentence[end:]
        units.append(sentence)
    return units


def _tail(piece: str) -> str:
    """Return up to 100 last characters of a piece, from a sentence or word; "" if it ends in code."""
    fences = _fences(piece)
    plain = piece[fences[-1][1] :] if fences else piece
    if len(plain) <= OVERLAP_CHARS:
        return plain.lstrip()
    start = len(plain) - OVERLAP_CHARS
    beginnings = (match.start() for match in _SENTENCE.finditer(plain))
    first = next((beginning for beginning in beginnings if beginning >= start), len(plain))
    if not plain[first:].strip():
        space = re.search(r"\s", plain[start:])
        first = start + space.end() if space else start
    return plain[first:]


# How a lesson of an imported course begins: with its number, and its link where it has one.
#
# [Lesson 3](https://example.com/3)        Lesson 3
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
    numbering = number_of(text)
    if numbering is not None:
        return numbering.number
    match = _TITLE.match(title)
    return int(match["number"]) if match else None


def number_line(number: int, link: str) -> str:
    """Return the beginning of a lesson with a number."""
    if not link:
        return f"Lesson {number}"
    target = link.replace("<", "%3C").replace(">", "%3E")
    if re.search(r"[()\s]", target):
        target = f"<{target}>"
    return f"[Lesson {number}]({target})"


# The parts of a lesson that was learned: its text as headings and back.
#
#     The summary, a paragraph.
#
#     The explanation, with code.
#
#     ## Problem
#     ## When to apply
#     ## When not to apply
#     ## Trade-offs        - `+ for` and `- against`, a line each
#     ## Related           - `- kind: lesson or subject`
#
# A lesson may have any of them; text under another heading belongs to what comes before it.
PROBLEM, WHEN, WHEN_NOT = "Problem", "When to apply", "When not to apply"
TRADE_OFFS, RELATED = "Trade-offs", "Related"
SUPERSEDES = "supersedes"
RELATIONS = ("related", "alternative", "prerequisite", SUPERSEDES)
_HEADING = re.compile(
    rf"^## ({'|'.join((PROBLEM, WHEN, WHEN_NOT, TRADE_OFFS, RELATED))})[ \t]*$", re.MULTILINE
)
_RELATED = re.compile(rf"- ({'|'.join(RELATIONS)}): (.+)")


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts that learning writes; an empty one is not there.

    `pro` and `con` are trade-offs; `related` is (kind, lesson or subject), the kind of RELATIONS.
    """

    summary: str
    explanation: str = ""
    problem: str = ""
    when: str = ""
    when_not: str = ""
    pro: tuple[str, ...] = ()
    con: tuple[str, ...] = ()
    related: tuple[tuple[str, str], ...] = ()


def text_of(parts: Parts) -> str:
    """Return the text of a lesson with these parts; empty ones are left out."""
    trade_offs = [*(f"+ {text}" for text in parts.pro), *(f"- {text}" for text in parts.con)]
    under = {
        PROBLEM: parts.problem,
        WHEN: parts.when,
        WHEN_NOT: parts.when_not,
        TRADE_OFFS: "\n".join(trade_offs),
        RELATED: "\n".join(f"- {kind}: {name}" for kind, name in parts.related),
    }
    blocks = [parts.summary, parts.explanation]
    blocks += [f"## {heading}\n\n{text}" for heading, text in under.items() if text]
    return "\n\n".join(filter(None, (block.strip() for block in blocks)))


def summary_of(text: str) -> str:
    """Return the first paragraph of a lesson's text."""
    return _HEADING.split(text)[0].strip().partition("\n\n")[0]


def relation(text: str) -> tuple[str, str]:
    """Return the (kind, name) of a relation such as "supersedes: Old limit"; without a kind `related`."""
    match = _RELATED.fullmatch(f"- {text}")
    return (match[1], match[2].strip()) if match else (RELATIONS[0], text)


def related_of(text: str) -> list[tuple[str, str]]:
    """Return the relations of a lesson: (kind, lesson or subject), the kind of RELATIONS."""
    _, *rest = _HEADING.split(text)
    under = dict(zip(rest[::2], rest[1::2], strict=True)).get(RELATED, "")
    links = map(_RELATED.fullmatch, map(str.strip, under.strip().splitlines()))
    return [(match[1], match[2]) for match in links if match]


def superseded(text: str) -> list[str]:
    """Return the names of the lessons that a lesson's text says to supersede."""
    return [name for kind, name in related_of(text) if kind == SUPERSEDES]


def with_items(text: str, added: str) -> str:
    """Return a lesson's text with more of it before its first section of these, or at its end."""
    match = _HEADING.search(text)
    end = match.start() if match else len(text)
    return "\n\n".join(filter(None, (text[:end].rstrip(), added, text[end:]))).strip()
