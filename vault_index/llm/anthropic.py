"""The Messages API over plain HTTP: `anthropic:MODEL`.

Structured answers come by the schema in the prompt, as through every door: a forced tool would cost
its description in each call, and gateways that speak this API do not all take tools.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from vault_index.errors import ModelAwayError, ModelToolsError
from vault_index.llm.anthropic_stream import MessageStream
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
)
from vault_index.llm.server import TIMEOUT_SECONDS, Address, Answered, Server, checked, tokens_of
from vault_index.llm.tool_calls import call_of, names_of, speaks_of_tools

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
    """Return the reply in an answer, None if there is no such thing."""
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
