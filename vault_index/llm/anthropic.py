"""The Messages API over plain HTTP: `anthropic:MODEL`.

Structured answers come by the schema in the prompt, as through every door: a forced tool would cost
its description in each call, and gateways that speak this API do not all take tools.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from vault_index.errors import ModelAwayError, ModelToolsError
from vault_index.llm.door import (
    ASSISTANT,
    CUT,
    DECLINED,
    ENDED,
    MAX_ANSWER_TOKENS,
    TOOL,
    Question,
    Reply,
    Take,
    Turn,
    call_of,
    names_of,
    speaks_of_tools,
)
from vault_index.llm.server import TIMEOUT_SECONDS, Address, Answered, Server, checked, tokens_of

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


class MessageStream:
    """A message that is put together; `take` gets its text in pieces."""

    def __init__(self, take: Take) -> None:
        self.is_ended = False
        self.began = False
        self._take = take
        self._blocks: dict[Any, dict[str, Any]] = {}
        self._inputs: dict[Any, list[str]] = {}  # arguments of calls, in pieces
        self._stop: Any = None
        self._usage: dict[str, Any] = {}
        self._error: dict[str, Any] | None = None

    @property
    def is_whole(self) -> bool:
        """Whether the model said why it ended."""
        return bool(self._stop) or self.is_ended

    @property
    def value(self) -> dict[str, Any]:
        """The message as it comes without a stream."""
        if self._error is not None:
            return {"error": {**self._error, "code": _STATUS.get(str(self._error.get("type")))}}
        for index, pieces in self._inputs.items():
            if pieces:
                self._blocks[index]["input"] = "".join(pieces)
        content = list(self._blocks.values())
        return {"content": content, "stop_reason": self._stop, "usage": self._usage}

    def add(self, event: dict[str, Any]) -> None:
        """Take the next event."""
        kind, index = event.get("type"), event.get("index")
        if kind == "error" or "error" in event:
            error = event.get("error")
            self._error = error if isinstance(error, dict) else {}
            self.is_ended = True
        elif kind == "message_start":
            self.began = True
            self._count(_object(event, "message"))
        elif kind == "content_block_start" and isinstance(index, int):
            block = _object(event, "content_block")
            self._blocks[index] = {**block, "text": ""} if block.get("type") == "text" else block
            self._inputs[index] = []
            self._add_text(index, block.get("text"))
        elif kind == "content_block_delta" and index in self._blocks:
            delta = _object(event, "delta")
            self._add_text(index, delta.get("text"))
            if isinstance(piece := delta.get("partial_json"), str):
                self._inputs[index].append(piece)
        elif kind == "message_delta":
            self._stop = _object(event, "delta").get("stop_reason") or self._stop
            self._count(event)
        elif kind == "message_stop":
            self.is_ended = True

    def _add_text(self, index: Any, text: Any) -> None:
        block = self._blocks[index]
        if block.get("type") == "text" and isinstance(text, str) and text:
            block["text"] += text
            self._take(text)

    def _count(self, event: dict[str, Any]) -> None:
        """Take the tokens counted so far: later events have the larger numbers."""
        usage = _object(event, "usage")
        self._usage |= {key: count for key, count in usage.items() if count is not None}


def _object(event: dict[str, Any], key: str) -> dict[str, Any]:
    value = event.get(key)
    return value if isinstance(value, dict) else {}


URL = "https://api.anthropic.com"
VERSION = "2023-06-01"  # of the API
KEY, BASE = "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"
_ENDS = {
    "end_turn": ENDED,
    "stop_sequence": ENDED,
    "tool_use": ENDED,
    "max_tokens": CUT,
    "model_context_window_exceeded": CUT,
    "refusal": DECLINED,
}


class AnthropicDoor:
    """A model behind the Messages API. Key and server come from the user's environment."""

    starts_slowly = False
    answer_tokens = MAX_ANSWER_TOKENS
    can_call_tools = True

    def __init__(
        self, model: str, environ: Mapping[str, str], timeout: float = TIMEOUT_SECONDS
    ) -> None:
        self.name = f"anthropic:{model}"
        self._model = model
        self._key = environ.get(KEY, "").strip()
        base = (environ.get(BASE) or URL).rstrip("/")
        address = checked(Address(f"{base}/v1/messages", BASE, KEY, self._key))
        headers = {"x-api-key": self._key, "anthropic-version": VERSION}
        self._server = Server(self.name, address, headers, timeout)

    def ask(self, question: Question, take: Take | None = None) -> Reply:
        """Return the reply of one request. Raises ModelCallError."""
        if not self._key:
            raise ModelAwayError(f"{self.name}: there is no key", f"set {KEY} in the environment")
        body: dict[str, Any] = {
            "model": self._model,
            "max_tokens": MAX_ANSWER_TOKENS,
            "messages": _messages(question.turns),
            **_tools(question),
        }
        if question.system:  # an empty one is refused
            body["system"] = question.system
        stream = None if take is None else MessageStream(take)
        if stream is not None:
            body["stream"] = True
        answered = self._server.post(body, stream)
        reply = _reply(answered)
        if reply is None:
            if "tools" in body and answered.status >= 400 and speaks_of_tools(answered.value):
                raise ModelToolsError(f"{self.name} takes no tools", "choose another model")
            raise self._server.failure(answered)
        if take is not None and reply.text and (stream is None or not stream.began):
            take(reply.text)
        return reply

    def end(self) -> None:
        """End the request under way, from another thread."""
        self._server.end()


def _messages(turns: tuple[Turn, ...]) -> list[dict[str, Any]]:
    """Return the turns as messages of a user and an assistant by turns, as the API wants them."""
    messages: list[dict[str, Any]] = []
    for is_models, group in groupby(turns, lambda turn: turn.role == ASSISTANT):
        blocks = [block for turn in group for block in _blocks(turn)]
        is_plain = len(blocks) == 1 and blocks[0]["type"] == "text"
        content = blocks[0]["text"] if is_plain else blocks
        messages.append({"role": "assistant" if is_models else "user", "content": content})
    return messages


def _blocks(turn: Turn) -> list[dict[str, Any]]:
    if turn.role == TOOL:
        return [{"type": "tool_result", "tool_use_id": turn.call, "content": turn.text}]
    uses = [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments or {}}
        for call in turn.calls
    ]
    has_text = bool(turn.text.strip()) or not uses  # an empty one is refused
    return [*([{"type": "text", "text": turn.text}] if has_text else []), *uses]


def _tools(question: Question) -> dict[str, Any]:
    """Return the tools of a request: a conversation with calls is refused without them."""
    if question.tools:
        tools = [
            {
                "name": tool.name,
                "description": tool.description,
                "input_schema": tool.parameters,
            }
            for tool in question.tools
        ]
        return {"tools": tools}
    names = dict.fromkeys(names_of(question.turns).values())
    if not names:
        return {}
    tools = [{"name": name, "input_schema": {"type": "object"}} for name in names]
    return {"tools": tools, "tool_choice": {"type": "none"}}


def _reply(answered: Answered) -> Reply | None:
    """Return the reply in an answer, None if it has none."""
    value = answered.value
    blocks, end = value.get("content"), _ENDS.get(str(value.get("stop_reason")))
    if answered.status != 200 or not isinstance(blocks, list) or end is None:
        return None
    blocks = [block for block in blocks if isinstance(block, dict)]
    calls = [
        call_of(block.get("id"), block.get("name"), block.get("input"), number)
        for number, block in enumerate(blocks, start=1)
        if block.get("type") == "tool_use"
    ]
    usage = value.get("usage")
    taken = [
        tokens_of(usage, key)
        for key in ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    ]
    return Reply(
        "".join(block["text"] for block in blocks if isinstance(block.get("text"), str)),
        end,
        None if taken[0] is None else sum(tokens or 0 for tokens in taken),
        tokens_of(usage, "output_tokens"),
        calls=tuple(call for call in calls if call is not None),
    )
