"""Server-sent events out of the bytes of an answer: the JSON objects that are their data."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Protocol

_LINE_END = re.compile(rb"\r\n|\n|\r(?!\Z)")  # a return at the end may be half of one
_DONE = b"[DONE]"


class Stream(Protocol):
    """An answer that comes in events."""

    @property
    def is_whole(self) -> bool:
        """Whether the answer came to its end, so that the connection may end."""

    @property
    def is_ended(self) -> bool:
        """Whether nothing more is to come, so that nobody waits for it."""

    @property
    def value(self) -> dict[str, Any]:
        """All events as the one object that the server answers with if it does not stream."""

    def add(self, event: dict[str, Any]) -> None:
        """Take the next event; an empty one is the mark at the end."""


class Events:
    """A reader of events, whatever the pieces that the bytes come in. What is no JSON is left out."""

    def __init__(self) -> None:
        self._line = bytearray()
        self._name = b""
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> Iterator[dict[str, Any]]:
        """Yield the events that end in a piece."""
        has_return = self._line.endswith(b"\r")
        self._line += piece
        if not has_return and b"\n" not in piece and b"\r" not in piece:
            return
        *lines, rest = _LINE_END.split(bytes(self._line))
        self._line = bytearray(rest)
        for line in lines:
            yield from self._read(line)

    def end(self) -> Iterator[dict[str, Any]]:
        """Yield the last event, where the line that ends it is missing."""
        yield from self.feed(b"\n\n")

    def _read(self, line: bytes) -> Iterator[dict[str, Any]]:
        if not line:
            name, data = self._name, b"\n".join(self._data)
            self._name, self._data = b"", []
            event = _event(name, data)
            if event is not None:
                yield event
            return
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
        elif field == b"error":  # as older servers of llama.cpp do
            self._name, self._data = field, [value]
        elif field == b"event":
            self._name = value


def _event(name: bytes, data: bytes) -> dict[str, Any] | None:
    """Return the object of an event, {} for the mark at the end, None for all else."""
    if data.strip() == _DONE:
        return {}
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or not value:
        return None
    return {"error": value} if name == b"error" and "error" not in value else value
