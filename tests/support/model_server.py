"""A small real server that speaks the Messages API and chat completions, and misbehaves as it is told."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.support.local_server import LocalServer


@dataclass(frozen=True)
class Request:
    """What was asked: `headers` by their names in small letters."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]


@dataclass(frozen=True)
class Response:
    """What is answered instead of a model's words. `is_cut`: the connection ends in its middle."""

    status: int = 200
    body: Any = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    is_cut: bool = False


class ModelServer(LocalServer):
    """Serves on loopback while the `with` block runs; `requests` are all that it was asked.

    `answer` makes the words of a model from the body of a request. `instead` are answers that come
    first, one for each request; `judge` may refuse a request by what is in it. Every answer is
    `delay` seconds late.
    """

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.answer: Callable[[dict[str, Any]], str] = lambda _: "ok"
        self.instead: list[Response] = []
        self.judge: Callable[[dict[str, Any]], Response | None] = lambda _: None
        self.end = ""  # why an answer ends, in the words of its API; "" for the usual end
        self.delay = 0.0
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._send(Response(404, {"error": "only POST"}))

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                names = {name.lower(): value for name, value in self.headers.items()}
                server.requests.append(Request(self.path, names, body))
                time.sleep(server.delay)
                instead = server.instead.pop(0) if server.instead else server.judge(body)
                self._send(instead or Response(body=server.words(self.path, body)))

            def _send(self, response: Response) -> None:
                body = response.body
                data = body if isinstance(body, bytes) else json.dumps(body).encode()
                try:
                    self.send_response(response.status)
                    for name, value in response.headers.items():
                        self.send_header(name, value)
                    self.send_header("Content-Length", str(len(data)))
                    self.end_headers()
                    self.wfile.write(data[: len(data) // 2] if response.is_cut else data)
                    if response.is_cut:
                        self.wfile.flush()
                        self.connection.shutdown(socket.SHUT_RDWR)
                except (BrokenPipeError, ConnectionResetError):
                    return  # the client gave up waiting

            def log_message(self, format: str, *args: Any) -> None:
                """Print nothing."""

        super().__init__(Handler)

    def words(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Return what a model's words look like in the API of a path."""
        text = self.answer(body)
        if path.endswith("/messages"):
            return {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": body["model"],
                "content": [{"type": "text", "text": text}],
                "stop_reason": self.end or "end_turn",
                "usage": {"input_tokens": 40, "cache_read_input_tokens": 2, "output_tokens": 7},
            }
        message = {"role": "assistant", "content": text, "refusal": None}
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "model": body["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": self.end or "stop"}],
            "usage": {"prompt_tokens": 42, "completion_tokens": 7, "total_tokens": 49},
        }
