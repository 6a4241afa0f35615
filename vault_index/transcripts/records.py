"""JSON lines as agents write them: a half-written last line, broken UTF-8, two objects on a line."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO

MAX_LINE = 32 * 1024 * 1024  # bytes; 20 MB were seen, a longer one is passed over
_DECODER = json.JSONDecoder()
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")  # `"\ud83d"`, with or without its other half
_SPACE = re.compile(r"\s*")


@dataclass(slots=True)
class Unread:
    """The lines and records that a reader passed over, for `lessons status`."""

    lines: int = 0  # that are not JSON
    types: Counter[str] = field(default_factory=Counter)  # of records that nobody described yet

    def count(self) -> int:
        """Return how many there are."""
        return self.lines + self.types.total() if self.types else self.lines


def lines(opened: BinaryIO) -> Iterator[tuple[bytes, bool]]:
    """Yield the lines of a file from where it is, with their ends, and whether each is one.

    Of a line above MAX_LINE come pieces, of which none is a line.
    """
    is_whole = True
    while line := opened.readline(MAX_LINE):
        has_end = line.endswith(b"\n")
        yield line, is_whole and (has_end or len(line) < MAX_LINE)
        is_whole = has_end


def records(line: bytes, unread: Unread) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of a line, which may hold several."""
    text = line.decode("utf-8", "replace")
    may_be_broken = b"\\u" in line and _HALF.search(line) is not None
    at = _begin(text, 0)
    while at < len(text):
        try:
            record, at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):  # a number of 5,000 digits is no JSONDecodeError
            unread.lines += 1
            break
        if isinstance(record, dict):
            yield _sound(record) if may_be_broken else record
        at = _begin(text, at)


def _sound(value: Any) -> Any:
    """Return a JSON value without halves of characters, which no file can hold."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return list(map(_sound, value))
    if isinstance(value, dict):
        return {_sound(name): _sound(one) for name, one in value.items()}
    return value


def _begin(text: str, at: int) -> int:
    """Return where the next character is that is no white space."""
    match = _SPACE.match(text, at)
    return match.end() if match else at
