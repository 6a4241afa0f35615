"""A small real server that speaks the Messages API and chat completions, and misbehaves as it is told."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.support import streams
from tests.support.local_server import Handler, LocalServer


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

    A request with tools is answered with the `calls` of them, too. What is asked for as a stream comes
    as one; `play` is what becomes of its events on their way. `is_left` is set when a client goes away
    in the middle.
    """

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.answer: Callable[[dict[str, Any]], str] = lambda _: "ok"
        self.instead: list[Response] = []
        self.judge: Callable[[dict[str, Any]], Response | None] = lambda _: None
        self.end = ""  # why an answer ends, in the words of its API; "" for the usual end
        self.context = 10**9  # tokens of a question that it reads
        self.delay = 0.0
        self.calls: Callable[[dict[str, Any]], Sequence[streams.Call]] = lambda _: ()
        self.play: streams.Play = list
        self.is_left = threading.Event()
        server = self

        class Answering(Handler):
            def do_GET(self) -> None:
                self.send({"error": "only POST"}, 404)

            def do_POST(self) -> None:
                body = self.body()
                names = {name.lower(): value for name, value in self.headers.items()}
                server.requests.append(Request(self.path, names, body))
                time.sleep(server.delay)
                instead = server.instead.pop(0) if server.instead else server.judge(body)
                if instead is None and body.get("stream"):
                    events = server.play(server.events(self.path, body))
                    if not streams.send(self, "text/event-stream", events):
                        server.is_left.set()
                    return
                response = instead or Response(body=server.whole(self.path, body))
                headers = {**response.headers, "Connection": "close"}
                self.send(response.body, response.status, headers=headers, is_cut=response.is_cut)

        super().__init__(Answering)

    @property
    def chats(self) -> list[dict[str, Any]]:
        """The bodies of all requests."""
        return [request.body for request in self.requests]

    def count(self, body: dict[str, Any]) -> int:
        """Return the tokens of a question."""
        return min(self.context, max(42, len(json.dumps(body["messages"])) // 4))

    def whole(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Return a model's words in the form of a path's API."""
        text, calls = self.answer(body), self.wanted(body)
        if path.endswith("/messages"):
            message = self.message(body["model"], text, calls)
            for block in message["content"][1:]:
                block["input"] = json.loads(block["input"])
            return message
        message = {"role": "assistant", "content": text, "refusal": None}
        if calls:
            message["tool_calls"] = [
                {
                    "id": f"call_{index}",
                    "type": "function",
                    "function": {"name": name, "arguments": arguments},
                }
                for index, (name, arguments) in enumerate(calls)
            ]
        end = self.end or ("tool_calls" if calls else "stop")
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "model": body["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": end}],
            "usage": {"prompt_tokens": self.count(body), "completion_tokens": 7},
        }

    def events(self, path: str, body: dict[str, Any]) -> Iterable[bytes]:
        """Return the same words as events."""
        model, text, calls = body["model"], self.answer(body), self.wanted(body)
        if path.endswith("/messages"):
            return streams.anthropic_events(self.message(model, text, calls))
        end = self.end or ("tool_calls" if calls else "stop")
        is_counted = body.get("stream_options", {}).get("include_usage")
        counted = self.count(body) if is_counted else None
        pieces = streams.pieces_of(text, streams.TEXT_CHARS)
        return [*streams.openai_events(model, pieces, calls, end, counted)]

    def message(self, model: str, text: str, calls: Sequence[streams.Call]) -> dict[str, Any]:
        """Return a message of the Messages API; the inputs of its calls are still texts."""
        blocks: list[dict[str, Any]] = [{"type": "text", "text": text}]
        blocks += [
            {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": arguments}
            for number, (name, arguments) in enumerate(calls, start=1)
        ]
        end = self.end or ("tool_use" if calls else "end_turn")
        return streams.anthropic_message(model, blocks, end)

    def wanted(self, body: dict[str, Any]) -> Sequence[streams.Call]:
        """Return the calls that the model asks for; only tools of the request can be called."""
        is_none = body.get("tool_choice") in ("none", {"type": "none"})
        return self.calls(body) if body.get("tools") and not is_none else ()
