"""Any server with OpenAI's chat completions, over plain HTTP: `openai:MODEL` at [llm] openai_url.

llama.cpp, vLLM, LM Studio and gateways speak it, none of them all of it: what a server refuses with
status 400 or 422 is asked in a simpler form, for this question and those after it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from vault_index.config import Config
from vault_index.errors import ModelToolsError, SettingsError
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
    ToolCall,
    Turn,
    call_of,
    described,
    speaks_of_tools,
)
from vault_index.llm.server import TIMEOUT_SECONDS, Address, Answered, Server, checked, tokens_of


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


KEY, SETTING = "OPENAI_API_KEY", "openai_url of [llm]"
_SCHEMA, _REPEATABLE, _LIMIT = "response_format", "temperature", "max_tokens"
_STREAM, _COUNTED = "stream", "stream_options"
_NAMED = (_REPEATABLE, _LIMIT, _STREAM, _COUNTED, _SCHEMA)  # left out where a server names one
_LIKELY = (_COUNTED, _SCHEMA)  # left out where it names nothing
_ENDS = {"length": CUT, "content_filter": DECLINED}  # all else: it came to its end


class OpenAIDoor:
    """A model behind chat completions. A server of one's own needs no key."""

    starts_slowly = False
    answer_tokens = MAX_ANSWER_TOKENS
    can_call_tools = True

    def __init__(
        self,
        model: str,
        config: Config,
        environ: Mapping[str, str],
        timeout: float = TIMEOUT_SECONDS,
    ) -> None:
        self.name = f"openai:{model}"
        self._model = model
        if not config.llm_openai_url:
            raise SettingsError(
                f"{self.name}: no server is named",
                f'write openai_url = "http://127.0.0.1:8080/v1" under [llm] in '
                f"{config.home / 'config.toml'}",
            )
        key = environ.get(KEY, "").strip()
        url = f"{config.llm_openai_url.rstrip('/')}/chat/completions"
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._server = Server(self.name, checked(Address(url, SETTING, KEY, key)), headers, timeout)
        self._refused: set[str] = set()  # what this server does not know

    def ask(self, question: Question, take: Take | None = None) -> Reply:
        """Return the reply of one request that the server takes. Raises ModelCallError."""
        while True:
            body = self._body(question, streams=take is not None)
            stream = ChatStream(take) if take is not None and _STREAM in body else None
            answered = self._server.post(body, stream)
            reply = _reply(answered)
            if reply is not None:
                if take is not None and reply.text and (stream is None or not stream.began):
                    take(reply.text)
                return reply
            if question.tools and answered.status >= 400 and speaks_of_tools(answered.value):
                raise ModelToolsError(f"{self.name} takes no tools", "choose another model")
            refused = _refused_of(answered, body)
            if not refused:
                raise self._server.failure(answered)
            self._refused.add(refused)

    def end(self) -> None:
        """End the request under way, from another thread."""
        self._server.end()

    def _body(self, question: Question, streams: bool) -> dict[str, Any]:
        system = [{"role": "system", "content": question.system}] if question.system else []
        messages = [*system, *map(_message, question.turns)]
        body: dict[str, Any] = {"model": self._model, "messages": messages}
        if _REPEATABLE not in self._refused:
            body[_REPEATABLE] = 0
        limit = "max_completion_tokens" if _LIMIT in self._refused else _LIMIT
        body[limit] = MAX_ANSWER_TOKENS
        if question.schema is not None and _SCHEMA not in self._refused:
            schema = {"name": "answer", "strict": True, "schema": _closed(question.schema)}
            body[_SCHEMA] = {"type": "json_schema", "json_schema": schema}
        if question.tools:
            body["tools"] = described(question.tools)
        if streams and _STREAM not in self._refused:
            body[_STREAM] = True
            if _COUNTED not in self._refused:
                body[_COUNTED] = {"include_usage": True}
        return body


def _message(turn: Turn) -> dict[str, Any]:
    if turn.role == TOOL:
        return {"role": "tool", "tool_call_id": turn.call, "content": turn.text}
    if turn.role != ASSISTANT:
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


def _refused_of(answered: Answered, body: Mapping[str, Any]) -> str:
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


def _reply(answered: Answered) -> Reply | None:
    """Return the reply in an answer, None if it has none."""
    choices = answered.value.get("choices")
    if answered.status != 200 or not isinstance(choices, list) or not choices:
        return None
    choice = choices[0] if isinstance(choices[0], dict) else {}
    message = choice.get("message")
    if not isinstance(message, dict) or "error" in answered.value:
        return None
    text = message.get("content")
    if text is not None and not isinstance(text, str):
        return None
    end = _ENDS.get(str(choice.get("finish_reason")), ENDED)
    usage = answered.value.get("usage")
    return Reply(
        text or "",
        DECLINED if message.get("refusal") else end,
        tokens_of(usage, "prompt_tokens"),
        tokens_of(usage, "completion_tokens"),
        calls=_calls(message.get("tool_calls")),
    )


def _calls(wanted: Any) -> tuple[ToolCall, ...]:
    calls = []
    for number, entry in enumerate(wanted if isinstance(wanted, list) else [], start=1):
        function = entry.get("function") if isinstance(entry, dict) else None
        if isinstance(function, dict):
            name, arguments = function.get("name"), function.get("arguments")
            calls.append(call_of(entry.get("id"), name, arguments, number))
    return tuple(call for call in calls if call is not None)


def _closed(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema whose objects have no other properties, as `strict` wants it."""
    closed = dict(schema)
    if "properties" in schema:
        closed["properties"] = {name: _closed(of) for name, of in schema["properties"].items()}
        closed["additionalProperties"] = False
    if "items" in schema:
        closed["items"] = _closed(schema["items"])
    return closed
