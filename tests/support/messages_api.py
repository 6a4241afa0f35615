"""A small real server that speaks the messages API, as far as Claude Code needs it to end a turn."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any
from uuid import uuid4

from tests.support.local_server import LocalServer

_USAGE = {"input_tokens": 1, "output_tokens": 1}
Blocks = list[dict[str, Any]]


def text(words: str) -> dict[str, Any]:
    """Return a block of text."""
    return {"type": "text", "text": words}


def tool_use(name: str, **input: Any) -> dict[str, Any]:
    """Return a block that calls a tool."""
    return {"type": "tool_use", "id": f"toolu_{uuid4().hex[:24]}", "name": name, "input": input}


class MessagesApi(LocalServer):
    """Serves on loopback while the `with` block runs; `requests` are the bodies of all messages.

    `answer` makes the blocks of a message from the request. `held` requests wait for `release`.
    """

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.answer: Callable[[dict[str, Any]], Blocks] = lambda _: [text("ok")]
        self.held: Callable[[dict[str, Any]], bool] = lambda _: False
        self.release = threading.Event()
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_HEAD(self) -> None:
                self._send("text/plain", b"")

            def do_GET(self) -> None:
                self._send("application/json", b"{}")

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                request = json.loads(body or b"{}")
                path = self.path.partition("?")[0]
                if path.endswith("/count_tokens"):
                    self._send("application/json", b'{"input_tokens": 1}')
                elif not path.endswith("/v1/messages"):
                    self._send("application/json", b"{}")
                else:
                    api.requests.append(request)
                    if api.held(request):
                        api.release.wait(60)
                    message = _message(request, api.answer(request))
                    if request.get("stream"):
                        self._send("text/event-stream", _events(message))
                    else:
                        self._send("application/json", json.dumps(message).encode())

            def _send(self, kind: str, data: bytes) -> None:
                try:
                    self.send_response(200)
                    self.send_header("Content-Type", kind)
                    self.send_header("Content-Length", str(len(data)))
                    self.end_headers()
                    if self.command != "HEAD":
                        self.wfile.write(data)
                except (BrokenPipeError, ConnectionResetError):
                    return  # the agent was killed

            def log_message(self, format: str, *args: Any) -> None:
                """Print nothing."""

        super().__init__(Handler)


def last_text(request: dict[str, Any]) -> str:
    """Return what the user or a tool said last, as JSON; messages of the system may follow."""
    of_user = [message for message in request["messages"] if message["role"] == "user"]
    return json.dumps(of_user[-1]["content"])


def _message(request: dict[str, Any], blocks: Blocks) -> dict[str, Any]:
    calls = any(block["type"] == "tool_use" for block in blocks)
    return {
        "id": f"msg_{uuid4().hex[:24]}",  # blocks of one id are one message
        "type": "message",
        "role": "assistant",
        "model": request.get("model", "model"),
        "content": blocks,
        "stop_reason": "tool_use" if calls else "end_turn",
        "stop_sequence": None,
        "usage": _USAGE,
    }


def _events(message: dict[str, Any]) -> bytes:
    start = {**message, "content": [], "stop_reason": None}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": start}]
    for index, block in enumerate(message["content"]):
        if block["type"] == "text":
            empty: dict[str, Any] = {**block, "text": ""}
            delta = {"type": "text_delta", "text": block["text"]}
        else:
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        events += [
            {"type": "content_block_start", "index": index, "content_block": empty},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    stop = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    events += [{"type": "message_delta", "delta": stop, "usage": _USAGE}, {"type": "message_stop"}]
    lines = (f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    return "".join(lines).encode()
