"""Fitting lines to the width of the terminal. In a pipe a line is as long as it is."""

from __future__ import annotations

import re
import sys
import unicodedata
from typing import TextIO

ELLIPSIS = "…"
MIN_COLUMNS = 20  # in a narrower terminal, or one without a size, lines are not cut

_ESCAPE = re.compile(r"(\x1b\[[0-9;]*m)")


def width(*, err: bool = False) -> int | None:
    """Return how many columns stdout has, or stderr; None where it is no terminal."""
    stream: TextIO = sys.stderr if err else sys.stdout
    if not stream.isatty():
        return None
    import shutil

    columns = shutil.get_terminal_size().columns
    return columns if columns >= MIN_COLUMNS else None


def columns(text: str) -> int:
    """Return how many columns a line without escapes takes."""
    if text.isascii():
        return len(text)
    return sum(map(_columns, text))


def clip(line: str, most: int | None) -> str:
    """Cut a line to some columns and end it with "…"; escapes take none, and all of them stay."""
    if most is None or _shown_columns(line) <= most:
        return line
    parts: list[str] = []
    room = most - columns(ELLIPSIS)
    for number, piece in enumerate(_ESCAPE.split(line)):
        if number % 2:
            parts.append(piece)
        elif room >= 0:
            end, room = _fitting(piece, room)
            parts.append(piece[:end])
            if end < len(piece):
                parts.append(ELLIPSIS)
                room = -1
    return "".join(parts)


def wrap(line: str, most: int | None, indent: int = 0) -> str:
    """Break a line between words so that each part fits; what is one word, such as a path, stays whole.

    The parts after the first are indented.
    """
    if most is None or _shown_columns(line) <= most:
        return line
    lines: list[str] = []
    words = re.findall(r"\s*\S+", line)
    now = ""
    for word in words:
        if now.strip() and _shown_columns(now + word) > most:
            lines.append(now)
            now = " " * indent + word.lstrip()
        else:
            now += word
    return "\n".join([*lines, now])


def _shown_columns(line: str) -> int:
    return columns(_ESCAPE.sub("", line))


def _fitting(text: str, room: int) -> tuple[int, int]:
    """Return how many characters fit, and the columns that are left then; -1 if not all fit."""
    for at, char in enumerate(text):
        if _columns(char) > room:
            return at, -1
        room -= _columns(char)
    return len(text), room


def _columns(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
