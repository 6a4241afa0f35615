"""Any server with OpenAI's chat completions, over plain HTTP: `openai:MODEL` at [llm] openai_url.

llama.cpp, vLLM, LM Studio and gateways speak it, none of them all of it: what a server refuses with
status 400 or 422 is asked in a simpler form, for this question and those after it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from vault_index.config import Config
from vault_index.errors import SettingsError
from vault_index.llm import backend, server

SETTING = "openai_url of [llm]"
_SCHEMA, _REPEATABLE, _LIMIT = "response_format", "temperature", "max_tokens"
_STREAM, _COUNTED = "stream", "stream_options"
_NAMED = (_REPEATABLE, _LIMIT, _STREAM, _COUNTED, _SCHEMA)  # left out where a server names one
_LIKELY = (_COUNTED, _SCHEMA)  # left out where it names nothing


class _Call:
    """A call in pieces. Some servers give several the same index, or none."""

    def __init__(self, index: Any) -> None:
        self.index = index
        self.id: Any = None
        self.name: Any = None
        self._whole: Any = None  # arguments of a server that sends them as an object
        self._pieces: list[str] = []

    @property
    def arguments(self) -> Any:
        return "".join(self._pieces) if self._whole is None else self._whole

    def is_other(self, call_id: Any) -> bool:
        """Whether a piece that has a name begins another call."""
        return bool(self.id and call_id and call_id != self.id) or (
            self.index is None and not call_id
        )

    def add(self, call_id: Any, name: Any, arguments: Any) -> None:
        self.id = self.id or call_id
        self.name = self.name or name
        if isinstance(arguments, str):
            self._pieces.append(arguments)
        elif isinstance(arguments, dict):
            self._whole = arguments


class Completion(server.Reading):
    """A chat completion."""

    # all else: it came to its end
    ends: ClassVar = {"length": backend.CUT, "content_filter": backend.DECLINED}
    input_counts = ("prompt_tokens",)
    output_count = "completion_tokens"

    def __init__(self, take: backend.Take | None = None) -> None:
        super().__init__(take)
        self._is_refusal = False
        self._wanted: list[_Call] = []

    def add(self, event: dict[str, Any]) -> None:
        """Take the next event; an empty one is the mark at the end."""
        if not event or event.get("error"):
            self.error = event.get("error")
            self.is_ended = True
            return
        self._count(event.get("usage"))
        choices = event.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            return
        delta = choice.get("delta") or choice.get("message")
        self.began |= isinstance(delta, dict) or "delta" in choice
        self._end = str(choice.get("finish_reason") or "") or self._end
        if isinstance(delta, dict):
            wanted = delta.get("tool_calls")
            for entry in wanted if isinstance(wanted, list) else []:
                if isinstance(entry, dict):
                    self._add_call(entry)
            self._is_refusal |= isinstance(refusal := delta.get("refusal"), str) and bool(refusal)
            self._add_text(delta.get("content"))

    def _add_call(self, entry: dict[str, Any]) -> None:
        """Take a piece of a call: the first has its id and name, in later ones they may be empty."""
        function = server.dict_at(entry, "function")
        index, call_id, name = entry.get("index"), entry.get("id"), function.get("name")
        call = next((call for call in reversed(self._wanted) if call.index == index), None)
        if call is None or (name and call.is_other(call_id)):
            call = _Call(index)
            self._wanted.append(call)
        call.add(call_id, name, function.get("arguments"))

    def _why_ended(self) -> str:
        return backend.DECLINED if self._is_refusal else self.ends.get(self._end, backend.ENDED)

    def _calls(self) -> Iterable[backend.ToolCall | None]:
        for number, call in enumerate(self._wanted, start=1):
            yield backend.call_of(call.id, call.name, call.arguments, number)


class OpenAIBackend(server.HttpBackend):
    """A model behind chat completions. A server of one's own needs no key."""

    reading = Completion

    def __init__(
        self,
        model: str,
        config: Config,
        environ: Mapping[str, str],
        timeout: float = server.TIMEOUT_SECONDS,
    ) -> None:
        name = f"openai:{model}"
        if not config.llm.openai_url:
            raise SettingsError(
                f"{name}: no server is named",
                f'write openai_url = "http://127.0.0.1:8080/v1" under [llm] in '
                f"{config.home / 'config.toml'}",
            )
        key_name = config.llm.openai_key_variable
        key = environ.get(key_name, "").strip()
        url = f"{config.llm.openai_url.rstrip('/')}/chat/completions"
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        super().__init__(name, server.Address(url, SETTING, key_name, key), headers, timeout)
        self._model = model
        self._temperature = config.llm.temperature or 0
        self.answer_tokens = config.llm.max_tokens
        self._refused: set[str] = set()  # what this server does not know

    def _body(self, question: backend.Question, streams: bool) -> dict[str, Any]:
        system = [{"role": "system", "content": question.system}] if question.system else []
        messages = [*system, *map(_message, question.turns)]
        body: dict[str, Any] = {"model": self._model, "messages": messages}
        if _REPEATABLE not in self._refused:
            body[_REPEATABLE] = self._temperature
        limit = "max_completion_tokens" if _LIMIT in self._refused else _LIMIT
        body[limit] = self.answer_tokens
        if question.schema is not None and _SCHEMA not in self._refused:
            schema = {"name": "answer", "strict": True, "schema": question.schema}
            body[_SCHEMA] = {"type": "json_schema", "json_schema": schema}
        if question.tools:
            body["tools"] = backend.described(question.tools)
        if streams and _STREAM not in self._refused:
            body[_STREAM] = True
            if _COUNTED not in self._refused:
                body[_COUNTED] = {"include_usage": True}
        return body

    def _has_simpler_form(self, answered: server.Answered, body: Mapping[str, Any]) -> bool:
        refused = _refused_of(answered, body)
        if refused:
            self._refused.add(refused)
        return bool(refused)


def _message(turn: backend.Turn) -> dict[str, Any]:
    if turn.role == backend.TOOL:
        return {"role": "tool", "tool_call_id": turn.call, "content": turn.text}
    if turn.role != backend.ASSISTANT:
        return {"role": "user", "content": turn.text}
    message: dict[str, Any] = {"role": "assistant", "content": turn.text}
    if turn.calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments or {})},
            }
            for call in turn.calls
        ]
    return message


def _refused_of(answered: server.Answered, body: Mapping[str, Any]) -> str:
    """Return the part of a request that the server does not take, "" if it is another trouble.

    Models that reason take neither a temperature nor `max_tokens`, and the server names the one.
    """
    if answered.status not in (400, 422):
        return ""
    named = str(answered.error.get("param") or "")
    if named in _NAMED:
        return named if named in body else ""
    said = str(answered.value)
    if "context" in said:  # the question is too long, whatever form it has
        return ""
    likely = sorted((part for part in _LIKELY if part in body), key=lambda part: part not in said)
    return likely[0] if likely else ""
