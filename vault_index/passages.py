"""A lesson cut into passages, the pieces that are embedded.

The first passage is the whole lesson. A long lesson has further passages, cut at the ends of
sentences and never inside a code fence, so that what stands beyond the reach of the embedder is
found too. Each begins with the end of the one before it: what a sentence refers to is often there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

LONG_CHARS = 1600  # about 400 tokens: above that one vector no longer speaks for the whole
PIECE_CHARS = 800
OVERLAP_CHARS = 100
SHORT_CHARS = 300

_FENCED = re.compile(
    r"(?ms)^[ ]{0,3}(?P<mark>`{3,}(?=[^`\n]*$)|~{3,})"  # "```x``` y" is inline code
    r".*?(?:^[ ]{0,3}(?P=mark)[`~]*[ \t]*$|\Z)"
)
_LINK = re.compile(r"!?\[([^\[\]\n]*)\]\([^)\[\n]{0,2000}\)")  # linear: `[](` may be repeated
_SPACE = re.compile(r"\s*")
_BLANK_LINES = re.compile(r"\n{2,}")
# up to a full stop, a blank line, or a line end before a list item, a heading, a quote or a table row
_SENTENCE = re.compile(
    r".+?(?:[.!?:][\"')\]*_`]*\s+|\n\s*\n\s*|\n(?=[ \t]*(?:[-*+>|#]|\d+[.)]))|\Z)", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class _Unit:
    """What is not cut: a sentence with the space after it, or a code fence."""

    text: str
    is_code: bool = False


@dataclass(frozen=True, slots=True)
class _Piece:
    """A passage, the number of its first unit, and what it repeats before that."""

    text: str
    start: int
    tail: str


def cut(text: str) -> list[str]:
    """Cut a lesson's markdown into passages: the whole, then pieces of at most 800 characters.

    A text of up to 1,600 characters is one passage. Each piece but the first repeats up to 100
    characters of the one before. Only a code fence may be longer than a piece: it stays whole.
    """
    if len(text) <= LONG_CHARS:
        return [text]
    units = _units(text)
    pieces = _pack(units, PIECE_CHARS)
    if len(pieces) > 1 and len(pieces[-1].text) < SHORT_CHARS:
        # a short rest would be found for its brevity and say little: share with the one before
        before = pieces[-2]
        rest = units[before.start :]
        half = sum(len(unit.text) for unit in rest) // 2 + OVERLAP_CHARS
        pieces[-2:] = _pack(rest, min(half, PIECE_CHARS), before.tail)
    return [text, *(piece.text for piece in pieces)]


def _pack(units: list[_Unit], most: int, tail: str = "") -> list[_Piece]:
    """Fill pieces with units. `tail` is what the first piece repeats."""
    pieces: list[_Piece] = []
    start, text = 0, tail
    for number, unit in enumerate(units):
        length = len(unit.text.rstrip())
        if text.strip() and text != tail and len(text) + length > most:
            pieces.append(_Piece(text.strip(), start, tail))
            start, text = number, _tail(text)
            tail = text
        if len(text) + length > most:
            text = tail = ""  # a fence that leaves no room for what it would repeat
        text += unit.text
    if text.strip() and text != tail:
        pieces.append(_Piece(text.strip(), start, tail))
    return pieces


def prose(text: str) -> str:
    """Give the sentences of a markdown text: no code blocks, no link targets.

    What people type resembles the sentences, not the code: on the evaluation set the prose alone
    ranks better than the whole text. A text that is nothing but code is given as it is.
    """
    without = _LINK.sub(r"\1", _FENCED.sub("", text))
    return _BLANK_LINES.sub("\n", without).strip() or text.strip()


def _units(text: str) -> list[_Unit]:
    """Split into sentences and code fences; a sentence longer than a piece is split at words."""
    units: list[_Unit] = []
    position = 0
    for fence in _FENCED.finditer(text):
        units += _sentences(text[position : fence.start()])
        space = _SPACE.match(text, fence.end())
        assert space is not None  # it matches nothing, too
        units.append(_Unit(fence.group() + space.group(), is_code=True))
        position = space.end()
    return units + _sentences(text[position:])


def _sentences(text: str) -> list[_Unit]:
    units: list[_Unit] = []
    for sentence in _SENTENCE.findall(text):
        while len(sentence.rstrip()) > PIECE_CHARS:
            at = max(sentence.rfind(end, PIECE_CHARS // 4, PIECE_CHARS) for end in " \n") + 1
            at = at or PIECE_CHARS
            units.append(_Unit(sentence[:at]))
            sentence = sentence[at:]
        units.append(_Unit(sentence))
    return units


def _tail(piece: str) -> str:
    """Give the last 100 characters of a piece at most, from the beginning of a sentence or a word.

    Nothing of a piece that ends in code.
    """
    fences = list(_FENCED.finditer(piece))
    plain = piece[fences[-1].end() :] if fences else piece
    if len(plain) <= OVERLAP_CHARS:
        return plain.lstrip()
    start = len(plain) - OVERLAP_CHARS
    beginnings = [match.start() for match in _SENTENCE.finditer(plain)]
    at = next((one for one in beginnings if one >= start), None)
    if at is None or not plain[at:].strip():
        space = re.search(r"\s", plain[start:])
        at = start + space.end() if space else start
    return plain[at:]
