"""The Messages API over plain HTTP: `anthropic:MODEL`.

Structured answers come by the schema in the prompt, as through every backend: a forced tool would cost
its description in each call, and gateways that speak this API do not all take tools.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any, ClassVar

from vault_index.llm import backend
from vault_index.llm.server import HttpBackend, StreamedReply, dict_at

URL = "https://api.anthropic.com"
VERSION = "2023-06-01"  # of the API
BASE = "ANTHROPIC_BASE_URL"
INPUT_COUNTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_STATUS = {  # that the server answers with where an error comes before the first event
    "invalid_request_error": 400,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


class Message(StreamedReply):
    """A message of the API."""

    ends: ClassVar = {
        "end_turn": backend.ENDED,
        "stop_sequence": backend.ENDED,
        "tool_use": backend.ENDED,
        "max_tokens": backend.CUT,
        "model_context_window_exceeded": backend.CUT,
        "refusal": backend.DECLINED,
    }
    input_counts = INPUT_COUNTS
    output_count = "output_tokens"

    def __init__(self, take: backend.Take | None = None) -> None:
        super().__init__(take)
        self._blocks: dict[Any, dict[str, Any]] = {}
        self._inputs: dict[Any, str] = {}  # arguments of calls, as far as they came

    def add(self, event: dict[str, Any]) -> None:
        """Take the next event."""
        kind, index = event.get("type"), event.get("index")
        if kind == "error" or "error" in event:
            error = dict_at(event, "error")
            self.error = {**error, "code": _STATUS.get(str(error.get("type")))}
            self.is_ended = True
        elif isinstance(blocks := event.get("content"), list):  # the message as a whole
            self.began = True
            for number, block in enumerate(blocks):
                self._begin(number, block)
            self._end = str(event.get("stop_reason") or "")
            self._count(event.get("usage"))
        elif kind == "message_start":
            self.began = True
            self._count(dict_at(event, "message").get("usage"))
        elif kind == "content_block_start" and isinstance(index, int):
            self._begin(index, event.get("content_block"))
        elif kind == "content_block_delta" and index in self._blocks:
            delta = dict_at(event, "delta")
            if self._blocks[index].get("type") == "text":
                self._add_text(delta.get("text"))
            if isinstance(piece := delta.get("partial_json"), str):
                self._inputs[index] = self._inputs.get(index, "") + piece
        elif kind == "message_delta":
            self._end = str(dict_at(event, "delta").get("stop_reason") or "") or self._end
            self._count(event.get("usage"))
        elif kind == "message_stop":
            self.is_ended = True

    def _begin(self, index: int, block: Any) -> None:
        self._blocks[index] = block if isinstance(block, dict) else {}
        if self._blocks[index].get("type") == "text":
            self._add_text(self._blocks[index].get("text"))

    def _calls(self) -> Iterable[backend.ToolCall | None]:
        for number, (index, block) in enumerate(self._blocks.items(), start=1):
            if block.get("type") == "tool_use":
                arguments = self._inputs.get(index) or block.get("input")
                yield backend.call_of(block.get("id"), block.get("name"), arguments, number)


class AnthropicBackend(HttpBackend):
    """A model behind the Messages API. Key and server come from the user's environment."""

    kind = "anthropic"
    reading = Message
    needs_key = True

    def _server(self) -> tuple[str, str, str]:
        base = (self.environ.get(BASE) or URL).rstrip("/")
        return f"{base}/v1/messages", BASE, self.config.llm.anthropic_key_variable

    def _headers(self) -> dict[str, str]:
        return {"x-api-key": self.key, "anthropic-version": VERSION}

    def _body(self, question: backend.ModelQuestion, streams: bool) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self.model,
            "max_tokens": self.answer_tokens,
            "messages": _messages(question.turns),
            **_tools(question),
        }
        if question.system:  # an empty one is refused
            body["system"] = question.system
        if self.config.llm.temperature is not None:  # some models take none
            body["temperature"] = self.config.llm.temperature
        if streams:
            body["stream"] = True
        return body


def _messages(turns: tuple[backend.Turn, ...]) -> list[dict[str, Any]]:
    """Return the turns as messages of a user and an assistant by turns, as the API wants them."""
    messages: list[dict[str, Any]] = []
    for is_models, group in groupby(turns, lambda turn: turn.role == backend.ASSISTANT):
        blocks = [block for turn in group for block in _blocks(turn)]
        is_plain = len(blocks) == 1 and blocks[0]["type"] == "text"
        content = blocks[0]["text"] if is_plain else blocks
        messages.append({"role": "assistant" if is_models else "user", "content": content})
    return messages


def _blocks(turn: backend.Turn) -> list[dict[str, Any]]:
    if turn.role == backend.TOOL:
        return [{"type": "tool_result", "tool_use_id": turn.call, "content": turn.text}]
    uses = [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments or {}}
        for call in turn.calls
    ]
    has_text = bool(turn.text.strip()) or not uses  # an empty one is refused
    return [*([{"type": "text", "text": turn.text}] if has_text else []), *uses]


def _tools(question: backend.ModelQuestion) -> dict[str, Any]:
    """Return the tools of a request: a conversation with calls is refused without them."""
    if question.tools:
        tools = [
            {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
            for tool in question.tools
        ]
        return {"tools": tools}
    names = dict.fromkeys(backend.names_of(question.turns).values())
    if not names:
        return {}
    tools = [{"name": name, "input_schema": {"type": "object"}} for name in names]
    return {"tools": tools, "tool_choice": {"type": "none"}}
