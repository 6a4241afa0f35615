"""The events of a message -> the message."""

from __future__ import annotations

from typing import Any

from vault_index.llm.door import Take

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
