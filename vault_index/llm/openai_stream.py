"""The events of a chat completion -> the completion."""

from __future__ import annotations

from typing import Any

from vault_index.llm.door import Take


class ChatStream:
    """A completion that is put together; `take` gets its text in pieces."""

    def __init__(self, take: Take) -> None:
        self.is_ended = False
        self.began = False
        self._take = take
        self._texts: list[str] = []
        self._refusals: list[str] = []
        self._calls: list[_Call] = []
        self._finish = ""
        self._usage: Any = None
        self._error: Any = None

    @property
    def is_whole(self) -> bool:
        """Whether the model said why it ended; not every server marks the end of the events."""
        return bool(self._finish) or self.is_ended

    @property
    def value(self) -> dict[str, Any]:
        """The completion as it comes without a stream."""
        if self._error is not None:
            return {"error": self._error}
        if not self.began:
            return {}
        message = {
            "content": "".join(self._texts),
            "refusal": "".join(self._refusals),
            "tool_calls": [call.value for call in self._calls],
        }
        choice = {"message": message, "finish_reason": self._finish or "stop"}
        return {"choices": [choice], "usage": self._usage}

    def add(self, event: dict[str, Any]) -> None:
        """Take the next event; an empty one is the mark at the end."""
        if not event or event.get("error"):
            self._error = event.get("error")
            self.is_ended = True
            return
        if event.get("usage"):
            self._usage = event["usage"]
        choices = event.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            return
        self.began = True
        delta = choice.get("delta") or choice.get("message")
        if isinstance(delta, dict):
            self._add_delta(delta)
        self._finish = str(choice.get("finish_reason") or "") or self._finish

    def _add_delta(self, delta: dict[str, Any]) -> None:
        wanted = delta.get("tool_calls")
        for entry in wanted if isinstance(wanted, list) else []:
            if isinstance(entry, dict):
                self._add_call(entry)
        if isinstance(refusal := delta.get("refusal"), str):
            self._refusals.append(refusal)
        if isinstance(text := delta.get("content"), str) and text:
            self._texts.append(text)
            self._take(text)

    def _add_call(self, entry: dict[str, Any]) -> None:
        """Take a piece of a call: the first has its id and name, in later ones they may be empty."""
        function = entry.get("function")
        function = function if isinstance(function, dict) else {}
        index, call_id, name = entry.get("index"), entry.get("id"), function.get("name")
        call = next((call for call in reversed(self._calls) if call.index == index), None)
        if call is None or (name and call.is_other(call_id)):
            call = _Call(index)
            self._calls.append(call)
        call.add(call_id, name, function.get("arguments"))


class _Call:
    """A call in pieces. Some servers give several the same index, or none."""

    def __init__(self, index: Any) -> None:
        self.index = index
        self._id: Any = None
        self._name: Any = None
        self._whole: Any = None  # arguments of a server that sends them as an object
        self._pieces: list[str] = []

    @property
    def value(self) -> dict[str, Any]:
        arguments = "".join(self._pieces) if self._whole is None else self._whole
        return {"id": self._id, "function": {"name": self._name, "arguments": arguments}}

    def is_other(self, call_id: Any) -> bool:
        """Whether a piece that has a name begins another call."""
        return bool(self._id and call_id and call_id != self._id) or (
            self.index is None and not call_id
        )

    def add(self, call_id: Any, name: Any, arguments: Any) -> None:
        self._id = self._id or call_id
        self._name = self._name or name
        if isinstance(arguments, str):
            self._pieces.append(arguments)
        elif isinstance(arguments, dict):
            self._whole = arguments
