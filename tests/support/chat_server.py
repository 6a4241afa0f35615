"""A small real server with OpenAI's chat completions, whose model searches once and then writes."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from tests.support.local_server import Handler, LocalServer

Body = dict[str, Any]
PATIENCE_SECONDS = 60


class ChatServer(LocalServer):
    """Serves on loopback while the `with` block runs; `requests` are the bodies of all questions.

    `search` makes the arguments of the model's search from a question; None: it answers without one.
    `words` makes the pieces of its answer. Before the last piece it waits for `release`. `left` is set
    when a client goes away in the middle of an answer.
    """

    def __init__(self) -> None:
        self.requests: list[Body] = []
        self.release = threading.Event()
        self.left = threading.Event()
        self.begin()
        chat = self

        class Answering(Handler):
            protocol_version = "HTTP/1.0"  # an answer without a length ends with its connection

            def do_POST(self) -> None:
                body = self.body()
                chat.requests.append(body)
                try:
                    self._answer(body)
                except (BrokenPipeError, ConnectionResetError):
                    chat.left.set()

            def _answer(self, body: Body) -> None:
                deltas = chat.deltas(body)
                if chat.status != 200:
                    self.send({"error": {"message": "no model is loaded"}}, chat.status)
                elif not body.get("stream"):
                    self.send(whole(body, list(deltas)))
                else:
                    self.send_response(200)
                    self.send_header("Content-Type", "text/event-stream")
                    self.end_headers()
                    for delta in deltas:
                        self._write(chunk(delta))
                    self.wfile.write(b"data: [DONE]\n\n")

            def _write(self, value: Body) -> None:
                self.wfile.write(f"data: {json.dumps(value)}\n\n".encode())
                self.wfile.flush()

        super().__init__(Answering)

    def begin(self) -> None:
        """Begin a new script: a search for the question, an answer that cites it, no waiting."""
        self.requests.clear()
        self.search: Callable[[str], Body | None] = lambda asked: {"query": asked}
        self.words: Callable[[Body], Iterable[str]] = lambda _: ["It is ", "so [1]."]
        self.status = 200
        self.release.set()
        self.left.clear()

    def configure(self, home: Path, more: str = "") -> None:
        """Name this server and a model of it in the settings of a user."""
        url = f'[llm]\nopenai_url = "{self.url}/v1"\n'
        ask = f'[ask]\nmodel = "openai:scripted"\n{more}'
        (home / "config.toml").write_text(url + ask, "utf-8")

    def deltas(self, body: Body) -> Iterator[Body]:
        """Return what the model writes: a call of the tool that it was offered, or its answer."""
        last = body["messages"][-1]
        asked = next(m["content"] for m in reversed(body["messages"]) if m["role"] == "user")
        wanted = self.search(asked) if body.get("tools") and last["role"] == "user" else None
        if wanted is not None:
            call = {"name": body["tools"][0]["function"]["name"], "arguments": json.dumps(wanted)}
            yield {
                "tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": call}]
            }
            yield {"finish_reason": "tool_calls"}
            return
        before: str | None = None
        for word in chain(self.words(body)):
            if before is not None:
                yield {"content": before}
            before = word
        assert self.release.wait(PATIENCE_SECONDS), "nobody released the last piece"
        yield {"content": before or ""}
        yield {"finish_reason": "stop"}


def chunk(delta: Body) -> Body:
    """Return a part of an answer as a stream has it."""
    end = delta.get("finish_reason")
    shown = {} if end else delta
    choice = {"index": 0, "delta": shown, "finish_reason": end}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [choice]}


def whole(body: Body, deltas: list[Body]) -> Body:
    """Return parts of an answer as one answer."""
    content = "".join(delta.get("content", "") for delta in deltas)
    calls = [
        {key: value for key, value in call.items() if key != "index"}
        for delta in deltas
        for call in delta.get("tool_calls", ())
    ]
    message = {"role": "assistant", "content": content or None, "tool_calls": calls or None}
    end = deltas[-1].get("finish_reason", "stop")
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": end}],
        "usage": {"prompt_tokens": 42, "completion_tokens": 7, "total_tokens": 49},
    }
