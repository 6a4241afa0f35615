"""Answers in pieces, as the servers of two APIs send them, and what can happen to them on their way."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any
from uuid import uuid4

Play = Callable[[Any], Iterable[bytes]]  # the events of an answer -> the bytes that are sent
Call = tuple[str, str]  # name and arguments of a tool; not every model writes JSON
TEXT_CHARS, ARGUMENT_CHARS = 5, 4  # of a piece


def anthropic_message(model: str, content: list[dict[str, Any]], end: str) -> dict[str, Any]:
    """Return a message of the Messages API."""
    return {
        "id": f"msg_{uuid4().hex[:24]}",  # blocks of one id are one message
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": end,
        "stop_sequence": None,
        "usage": {"input_tokens": 40, "cache_read_input_tokens": 2, "output_tokens": 7},
    }


def anthropic_events(message: dict[str, Any]) -> list[bytes]:
    """Return the events of a message; the input of a tool may be any text."""
    start = {**message, "content": [], "stop_reason": None}
    start["usage"] = {**message["usage"], "output_tokens": 1}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": start}]
    for index, block in enumerate(message["content"]):
        if block["type"] == "text":
            empty, kind, key = {**block, "text": ""}, "text_delta", "text"
            pieces = pieces_of(block["text"], TEXT_CHARS)
        else:
            empty, kind, key = {**block, "input": {}}, "input_json_delta", "partial_json"
            given = block["input"]
            written_input = given if isinstance(given, str) else written(given)
            pieces = ["", *pieces_of(written_input, ARGUMENT_CHARS)]
        events.append({"type": "content_block_start", "index": index, "content_block": empty})
        events.append({"type": "ping"})
        for piece in pieces:
            delta = {"type": kind, key: piece}
            events.append({"type": "content_block_delta", "index": index, "delta": delta})
        events.append({"type": "content_block_stop", "index": index})
    last = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    events.append({"type": "message_delta", "delta": last, "usage": {"output_tokens": 7}})
    events.append({"type": "message_stop"})
    return [f"event: {event['type']}\ndata: {written(event)}\n\n".encode() for event in events]


def openai_events(
    model: str, pieces: Iterable[str], calls: Iterable[Call], end: str, counted: int | None
) -> Iterator[bytes]:
    """Yield the events of chat completions, each as soon as its piece is there."""
    chunk = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": model}

    def event(delta: dict[str, Any], reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return f"data: {written({**chunk, 'choices': [choice]})}\n\n".encode()

    yield event({"role": "assistant", "content": ""})
    yield from (event({"content": piece}) for piece in pieces)
    for index, (name, arguments) in enumerate(calls):
        function = {"name": name, "arguments": ""}
        call = {"index": index, "id": f"call_{index}", "type": "function", "function": function}
        yield event({"tool_calls": [call]})
        for piece in pieces_of(arguments, ARGUMENT_CHARS):
            yield event({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield event({}, end)
    if counted is not None:
        usage = {"prompt_tokens": counted, "completion_tokens": 7}
        yield f"data: {written({**chunk, 'choices': [], 'usage': usage})}\n\n".encode()
    yield b"data: [DONE]\n\n"


def pieces_of(text: str, size: int) -> list[str]:
    """Return a text in pieces."""
    return [text[start : start + size] for start in range(0, len(text), size)]


def written(value: Any) -> str:
    """Return JSON whose letters are letters, as servers write it."""
    return json.dumps(value, ensure_ascii=False)


def cut_after(count: int) -> Play:
    """Break the connection after so many events."""

    def play(events: list[bytes]) -> Iterator[bytes]:
        yield from events[:count]
        raise ConnectionAbortedError

    return play


def in_bytes(size: int, end: bytes = b"\n") -> Play:
    """Send so many bytes at a time, whatever they are in the middle of; lines end with `end`."""

    def play(events: list[bytes]) -> Iterator[bytes]:
        data = b"".join(events).replace(b"\n", end)
        yield from (data[start : start + size] for start in range(0, len(data), size))

    return play


def forever(piece: bytes, pause: float = 0.0, after: int = 0) -> Play:
    """Send the first events, and then the same piece until the client goes away."""

    def play(events: list[bytes]) -> Iterator[bytes]:
        yield from events[:after]
        never = threading.Event()
        while not never.wait(pause):
            yield piece

    return play


def send(handler: BaseHTTPRequestHandler, kind: str, pieces: Iterable[bytes]) -> bool:
    """Send each piece as a chunk of its own; whether the client was there to the end."""
    try:
        handler.send_response(200)
        handler.send_header("Content-Type", kind)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.send_header("Connection", "close")
        handler.end_headers()
        for piece in pieces:
            handler.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        handler.wfile.write(b"0\r\n\r\n")
    except ConnectionAbortedError:  # of `cut_after`
        handler.close_connection = True
    except (BrokenPipeError, ConnectionResetError):
        handler.close_connection = True
        return False
    return True
