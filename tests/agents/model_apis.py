"""A small real server that speaks as the models of three agents do, as far as they end a turn with it.

Codex asks the Responses API, Gemini CLI generateContent, opencode and Copilot CLI chat completions. They
can be told to run commands before they end a turn, opencode apart.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from uuid import uuid4

from tests.support.local_server import Handler, LocalServer

ANSWER = "ok"


class ModelApis(LocalServer):
    """Serves on loopback while the `with` block runs; `requests` are the bodies of all questions.

    `commands` are those that the model runs, one an answer, unless `command` says it from the request.
    `subagents` are the prompts of those that Codex's model starts before.
    """

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.commands: list[str] = []
        self.subagents: list[str] = []
        self.command: Callable[[dict[str, Any]], str] = lambda _: (
            self.commands.pop(0) if self.commands else ""
        )
        api = self

        class Answering(Handler):
            def do_GET(self) -> None:
                self.send({"data": [], "models": []})

            def do_POST(self) -> None:
                body = self.body()
                for ending, answer in ANSWERS.items():
                    if ending in self.path:
                        api.requests.append(body)
                        if api.subagents and ending == "/responses":
                            answer = _codex_spawn(api.subagents.pop(0))
                        elif ending in CALLS and (command := api.command(body)):
                            answer = CALLS[ending](command)
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


def _codex(item: dict[str, Any]) -> list[dict[str, Any]]:
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    done = {"id": "r1", "output": [item], "usage": usage}
    return [
        {"type": "response.created", "response": {"id": "r1"}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": done},
    ]


def _gemini(part: dict[str, Any]) -> list[dict[str, Any]]:
    content = {"role": "model", "parts": [part]}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1}
    candidate = {"content": content, "finishReason": "STOP", "index": 0}
    return [{"candidates": [candidate], "usageMetadata": usage}]


def _codex_call(command: str) -> list[dict[str, Any]]:
    return _codex_function({"name": "exec_command", "arguments": json.dumps({"cmd": command})})


def _codex_spawn(prompt: str) -> list[dict[str, Any]]:
    call = {"name": "spawn_agent", "namespace": "multi_agent_v1"}
    return _codex_function({**call, "arguments": json.dumps({"message": prompt})})


def _codex_function(call: dict[str, str]) -> list[dict[str, Any]]:
    id = uuid4().hex[:12]
    return _codex({"id": f"fc_{id}", "type": "function_call", "call_id": f"call_{id}", **call})


def _gemini_call(command: str) -> list[dict[str, Any]]:
    words = {"command": command, "description": "Run it"}
    return _gemini({"functionCall": {"name": "run_shell_command", "args": words}})


def _chat(delta: dict[str, Any], why: str = "stop") -> list[dict[str, Any]]:
    chunk = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    first = {"index": 0, "delta": {"role": "assistant", **delta}}
    last = {"index": 0, "delta": {}, "finish_reason": why}
    return [{**chunk, "choices": [choice]} for choice in (first, last)]


def _copilot_call(command: str) -> list[dict[str, Any]]:
    words = json.dumps({"command": command, "description": "Run it"})
    call = {"index": 0, "id": f"call_{uuid4().hex[:12]}", "type": "function"}
    calls = [{**call, "function": {"name": "bash", "arguments": words}}]
    return _chat({"tool_calls": calls}, "tool_calls")


CALLS = {
    "/responses": _codex_call,
    ":streamGenerateContent": _gemini_call,
    "/chat/completions": _copilot_call,
}
ANSWERS: dict[str, list[dict[str, Any]]] = {
    "/responses": _codex(_MESSAGE),
    ":streamGenerateContent": _gemini({"text": ANSWER}),
    "/chat/completions": _chat({"content": ANSWER}),
}
