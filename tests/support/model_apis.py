"""A small real server that speaks as the models of three agents do, as far as they end a turn with it.

Codex asks the Responses API, Gemini CLI generateContent, and opencode chat completions.
"""

from __future__ import annotations

import json
from typing import Any

from tests.support.local_server import Handler, LocalServer

ANSWER = "ok"


class ModelApis(LocalServer):
    """Serves on loopback while the `with` block runs; `requests` are the bodies of all questions."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        api = self

        class Answering(Handler):
            def do_GET(self) -> None:
                self.send({"data": [], "models": []})

            def do_POST(self) -> None:
                body = self.body()
                for ending, answer in ANSWERS.items():
                    if ending in self.path:
                        api.requests.append(body)
                        events = [json.dumps(event) for event in answer]
                        if ending == "/chat/completions":
                            events.append("[DONE]")
                        stream = "".join(f"data: {event}\n\n" for event in events)
                        self.send(stream.encode(), kind="text/event-stream")
                        return
                self.send({})

        super().__init__(Answering)


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
