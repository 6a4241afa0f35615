"""A small real server that speaks the messages API, as far as Claude Code needs it to end a turn."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any
from uuid import uuid4

from tests.support import streams
from tests.support.local_server import Handler, LocalServer

Blocks = list[dict[str, Any]]
Answer = Callable[[dict[str, Any]], Blocks]


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
        self.answer: Answer = lambda _: [text("ok")]
        self.held: Callable[[dict[str, Any]], bool] = lambda _: False
        self.release = threading.Event()
        api = self

        class Answering(Handler):
            def do_HEAD(self) -> None:
                self.send(b"", kind="text/plain")

            def do_GET(self) -> None:
                self.send({})

            def do_POST(self) -> None:
                request = self.body()
                path = self.path.partition("?")[0]
                if path.endswith("/count_tokens"):
                    self.send({"input_tokens": 1})
                elif not path.endswith("/v1/messages"):
                    self.send({})
                else:
                    api.requests.append(request)
                    if api.held(request):
                        api.release.wait(60)
                    blocks = api.answer(request)
                    calls = any(block["type"] == "tool_use" for block in blocks)
                    end = "tool_use" if calls else "end_turn"
                    message = streams.anthropic_message(request.get("model", "model"), blocks, end)
                    if request.get("stream"):
                        events = b"".join(streams.anthropic_events(message))
                        self.send(events, kind="text/event-stream")
                    else:
                        self.send(message)

        super().__init__(Answering)


def last_text(request: dict[str, Any]) -> str:
    """Return the last words of the user or a tool, as JSON; messages of the system may follow."""
    of_user = [message for message in request["messages"] if message["role"] == "user"]
    return json.dumps(of_user[-1]["content"])


def results_of(requests: list[dict[str, Any]], name: str) -> list[str]:
    """Return the result that each call of a tool gave the model, in the order of the calls."""
    calls: list[str] = []
    results: dict[str, str] = {}
    for request in requests:
        for block in (block for message in request["messages"] for block in _blocks(message)):
            if block.get("type") == "tool_use" and block["name"] == name:
                calls.append(block["id"])
            elif block.get("type") == "tool_result":
                content = block["content"]
                parts = content if isinstance(content, list) else [{"text": content}]
                results[block["tool_use_id"]] = "".join(part.get("text", "") for part in parts)
    return [results[call] for call in dict.fromkeys(calls) if call in results]


def model_that_calls(calls: dict[str, list[tuple[str, dict[str, Any]]]]) -> Answer:
    """Return a model that answers a prompt by calling tools, in turn, as a real one would.

    `calls` are names of tools and their input, by words of the prompt. A tool that is deferred is
    loaded first; until the agent has connected its server, the model sleeps in the shell.
    """

    def answer(request: dict[str, Any]) -> Blocks:
        turn, inputs = "", list[str]()
        for message in request["messages"]:
            blocks = _blocks(message)
            if message["role"] == "user" and not any("tool_use_id" in block for block in blocks):
                turn, inputs = json.dumps(blocks), []
            inputs += [
                json.dumps(block["input"]) for block in blocks if block["type"] == "tool_use"
            ]
        wanted = next((each for words, each in calls.items() if words in turn), [])
        for name, input in wanted:
            if json.dumps(input) in inputs:
                continue
            select = {"query": f"select:{name}", "max_results": 1}
            if any(tool["name"] == name for tool in request.get("tools", [])):
                return [tool_use(name, **input)]
            if name not in json.dumps(request):
                return [tool_use("Bash", command="sleep 1")]
            if json.dumps(select) not in inputs:
                return [tool_use("ToolSearch", **select)]
            return [tool_use(name, **input)]
        return [text("ok")]

    return answer


def _blocks(message: dict[str, Any]) -> Blocks:
    content: str | Blocks = message["content"]
    return [text(content)] if isinstance(content, str) else content
