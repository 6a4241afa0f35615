"""A small real server that speaks as the models of three agents do, as far as they end a turn with it.

Codex asks the Responses API, Gemini CLI generateContent, and opencode chat completions.
"""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.support.local_server import LocalServer

ANSWER = "ok"


class ModelApis(LocalServer):
    """Serves on loopback while the `with` block runs; `requests` are the bodies of all questions."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._send("application/json", b'{"data": [], "models": []}')

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                for ending, answer in ANSWERS.items():
                    if ending in self.path:
                        api.requests.append(json.loads(body))
                        events = [json.dumps(event) for event in answer]
                        if ending == "/chat/completions":
                            events.append("[DONE]")
                        stream = "".join(f"data: {event}\n\n" for event in events)
                        self._send("text/event-stream", stream.encode())
                        return
                self._send("application/json", b"{}")

            def _send(self, kind: str, data: bytes) -> None:
                try:
                    self.send_response(200)
                    self.send_header("Content-Type", kind)
                    self.send_header("Content-Length", str(len(data)))
                    self.end_headers()
                    self.wfile.write(data)
                except (BrokenPipeError, ConnectionResetError):
                    return  # the agent has ended

            def log_message(self, format: str, *args: Any) -> None:
                """Print nothing."""

        super().__init__(Handler)


_MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "content": [{"type": "output_text", "text": ANSWER, "annotations": []}],
}
_CHUNK = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
ANSWERS: dict[str, list[dict[str, Any]]] = {
    "/responses": [
        {"type": "response.created", "response": {"id": "r1"}},
        {"type": "response.output_item.done", "output_index": 0, "item": _MESSAGE},
        {
            "type": "response.completed",
            "response": {
                "id": "r1",
                "output": [_MESSAGE],
                "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2},
            },
        },
    ],
    ":streamGenerateContent": [
        {
            "candidates": [
                {
                    "content": {"role": "model", "parts": [{"text": ANSWER}]},
                    "finishReason": "STOP",
                    "index": 0,
                }
            ],
            "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1},
        }
    ],
    "/chat/completions": [
        {
            **_CHUNK,
            "choices": [{"index": 0, "delta": {"role": "assistant", "content": ANSWER}}],
        },
        {**_CHUNK, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    ],
}
