"""Server-sent events out of bytes that come in any pieces."""

from __future__ import annotations

from typing import Any

import pytest

from vault_index.llm.server import events_in

LINES = [
    'data: {"a": "ä\N{ROCKET}"}',
    "",
    ": still there",
    "",
    "event: x",
    'data: {"b":',
    "data:  2}",
]
READ: list[dict[str, Any]] = [{"a": "ä\N{ROCKET}"}, {"b": 2}, {}]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_events_are_the_same_wherever_the_bytes_are_split(end: str) -> None:
    data = end.join([*LINES, "", "data: [DONE]", "", ""]).encode()
    for place in range(len(data) + 1):
        assert read(data[:place], data[place:]) == READ
    assert read(*(data[place : place + 1] for place in range(len(data)))) == READ


def test_an_event_that_nobody_ended_counts() -> None:
    assert read(b'data: {"a": 1}') == read(b'data: {"a": 1}\n') == [{"a": 1}]
    assert read(b'data: {"a": ') == []


def read(*pieces: bytes) -> list[dict[str, Any]]:
    return [*events_in(pieces)]
