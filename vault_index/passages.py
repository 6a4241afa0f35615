"""A lesson cut into passages, the pieces that are embedded.

The first passage is the whole lesson. A long lesson has further passages, cut between paragraphs
and never inside a code fence, so that what stands beyond the reach of the embedder is found too.
"""

from __future__ import annotations

import re

LONG_CHARS = 1600  # about 400 tokens: above that one vector no longer speaks for the whole
PIECE_CHARS = 800

_FENCED = re.compile(
    r"(?ms)^[ ]{0,3}(?P<mark>`{3,}(?=[^`\n]*$)|~{3,})"  # "```x``` y" is inline code
    r".*?(?:^[ ]{0,3}(?P=mark)[`~]*[ \t]*$|\Z)"
)
_LINK = re.compile(r"!?\[([^\]\n]*)\]\([^)\n]*\)")
_BLANK_LINES = re.compile(r"\n{2,}")


def cut(text: str) -> list[str]:
    """Cut a lesson's markdown into passages: the whole, then pieces of about 800 characters.

    A text of up to 1,600 characters is one passage.
    """
    if len(text) <= LONG_CHARS:
        return [text]
    pieces: list[str] = []
    for unit in _units(text):
        if pieces and len(pieces[-1]) + len(unit) + 2 <= PIECE_CHARS:
            pieces[-1] += "\n\n" + unit
        else:
            pieces.append(unit)
    return [text, *pieces]


def prose(text: str) -> str:
    """Give the sentences of a markdown text: no code blocks, no link targets.

    What people type resembles the sentences, not the code: on the evaluation set the prose alone
    ranks better than the whole text. A text that is nothing but code is given as it is.
    """
    without = _LINK.sub(r"\1", _FENCED.sub("", text))
    return _BLANK_LINES.sub("\n", without).strip() or text.strip()


def _units(text: str) -> list[str]:
    """Split at blank lines outside code fences; a paragraph that is too long at line ends."""
    units: list[str] = []
    position = 0
    for fence in _FENCED.finditer(text):
        units += _paragraphs(text[position : fence.start()])
        units.append(fence.group().strip("\n"))
        position = fence.end()
    return units + _paragraphs(text[position:])


def _paragraphs(text: str) -> list[str]:
    out: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text):
        words = paragraph.strip()
        while len(words) > PIECE_CHARS:
            at = max(words.rfind(end, 0, PIECE_CHARS) for end in (". ", "\n", "? ", "! ", "; "))
            at = at + 1 if at > PIECE_CHARS // 4 else words.rfind(" ", 0, PIECE_CHARS)
            at = at if at > 0 else PIECE_CHARS
            out.append(words[:at].strip())
            words = words[at:].strip()
        if words:
            out.append(words)
    return out
