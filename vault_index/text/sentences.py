"""The sentences of a text, and of a markdown text those of its prose; and cutting a text at one.

Readers whose results were learned or measured with a rule of their own keep it: the score of prompt
injections, the passages of the index, the verdicts on lessons.
"""

from __future__ import annotations

import re

from vault_index.text import blocks

_CLOSING = r"[\"')\]*_`]*"  # what may be between a full stop and the space after it
_END = re.compile(rf"(?<=[.!?]){_CLOSING}\s+|\n\s*(?:[-*+>]\s+|\d+[.)]\s+)?|\A\s*[-*+]\s+")
_CUT = re.compile(rf"(?<=[.!?:]){_CLOSING}\s+|\n")
_BLANK_LINE = re.compile(r"\n[ \t]*\n")


def split(text: str) -> list[str]:
    """Return the sentences of a text as they are in it. An item of a list is a sentence."""
    return [each for piece in _END.split(text) if (each := piece.strip())]


def split_markdown(text: str) -> list[str]:
    """Return the sentences of a markdown text as they are in it, without headings and code."""
    lines = text.split("\n")
    code = blocks.code_lines(lines)
    prose = "\n".join(
        "\n" if is_code or line.lstrip().startswith("#") else line
        for line, is_code in zip(lines, code, strict=True)
    )
    return [each for paragraph in _BLANK_LINE.split(prose) for each in split(paragraph)]


def cut(text: str, limit: int) -> str:
    """Return the beginning of a text, at most `limit` characters, to the end of a sentence or word."""
    if limit <= 0:
        return ""
    ends = [match.start() for match in _CUT.finditer(text[: limit + 1])]
    end = next((stop for stop in reversed(ends) if stop >= limit // 3), None)
    if end is None:
        end = text.rfind(" ", 0, limit)
    return text[: end if end > 0 else limit].rstrip()


def shorten_line(text: str, limit: int) -> str:
    """Cut a text of one line to at most `limit` characters, at the end of a sentence: …"""
    if len(text) <= limit:
        return text
    short = cut(text, limit - 2)
    return f"{short} …" if short else ""
