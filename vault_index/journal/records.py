"""JSON lines as agents write them: a half-written last line, broken UTF-8, two objects on a line."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Unread:
    """What a reader passed over, for `lessons status`."""

    lines: int = 0  # that are not JSON
    types: Counter[str] = field(default_factory=Counter)  # of records that nobody described yet


def records(lines: Iterable[bytes], unread: Unread) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of a transcript; a line may hold several."""
    decoder = json.JSONDecoder()
    for line in lines:
        text = line.decode("utf-8", "replace").strip()
        while text:
            try:
                record, end = decoder.raw_decode(text)
            except (json.JSONDecodeError, RecursionError):
                unread.lines += 1
                break
            if isinstance(record, dict):
                yield record
            text = text[end:].lstrip()
