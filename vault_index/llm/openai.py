"""Any server with OpenAI's chat completions, over plain HTTP: `openai:MODEL` at [llm] openai_url.

`ollama:MODEL` is the same at OLLAMA_HOST. llama.cpp, vLLM, LM Studio and gateways speak it, none of
them all of it: what a server refuses with status 400 or 422 is asked in a simpler form, for this question
and those after it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import urlsplit

from vault_index import model_http
from vault_index.errors import ModelCallError, SettingsError
from vault_index.llm import backend, server
from vault_index.text.quote import without_key

SETTING = "openai_url of [llm]"
_SCHEMA, _REPEATABLE, _LIMIT = "response_format", "temperature", "max_tokens"
_STREAM, _COUNTED, _EFFORT = "stream", "stream_options", "reasoning_effort"
_NAMED = (_REPEATABLE, _LIMIT, _STREAM, _COUNTED, _SCHEMA)  # left out where a server names one
_LIKELY = (_COUNTED, _SCHEMA, _EFFORT)  # left out where it names nothing


@dataclass(slots=True)
class _CallPieces:
    """A call in pieces. Some servers give several the same index, or none."""

    index: Any
    id: Any = None
    name: Any = None
    arguments: Any = ""  # some servers send them as an object


class Completion(server.StreamedReply):
    """A chat completion."""

    # all else: it came to its end
    ends: ClassVar = {"length": backend.CUT, "content_filter": backend.DECLINED}
    input_counts = ("prompt_tokens",)
    output_count = "completion_tokens"

    def __init__(self, take: backend.Take | None = None) -> None:
        super().__init__(take)
        self._is_refusal = False
        self._wanted: list[_CallPieces] = []

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
        arguments = function.get("arguments")
        call = next((call for call in reversed(self._wanted) if call.index == index), None)
        has_other_id = call is not None and call.id and call_id and call_id != call.id
        if call is None or (name and (has_other_id or (index is None and not call_id))):
            call = _CallPieces(index)
            self._wanted.append(call)
        call.id = call.id or call_id
        call.name = call.name or name
        if isinstance(arguments, dict):
            call.arguments = arguments
        elif isinstance(arguments, str) and isinstance(call.arguments, str):
            call.arguments += arguments

    def _why_ended(self) -> str:
        return backend.DECLINED if self._is_refusal else self.ends.get(self._end, backend.ENDED)

    def _calls(self) -> Iterable[backend.ToolCall | None]:
        for number, call in enumerate(self._wanted, start=1):
            yield backend.call_of(call.id, call.name, call.arguments, number)


class OpenAIBackend(server.HttpBackend):
    """A model behind chat completions. A server of one's own needs no key."""

    kind = "openai"
    reading = Completion

    def _server(self) -> tuple[str, str, str]:
        settings = self.config.llm
        if not settings.openai_url:
            raise SettingsError(
                f"{self.name}: no server is named",
                f'write openai_url = "http://127.0.0.1:8080/v1" under [llm] in '
                f"{self.config.home / 'config.toml'}",
            )
        url = f"{settings.openai_url.rstrip('/')}/chat/completions"
        return url, SETTING, settings.openai_key_variable

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"} if self.key else {}

    def _body(self, question: backend.ModelQuestion, streams: bool) -> dict[str, Any]:
        system = [{"role": "system", "content": question.system}] if question.system else []
        messages = [*system, *map(_message, question.turns)]
        body: dict[str, Any] = {"model": self.model, "messages": messages}
        if _REPEATABLE not in self.refused:
            body[_REPEATABLE] = self.config.llm.temperature or 0
        limit = "max_completion_tokens" if _LIMIT in self.refused else _LIMIT
        body[limit] = self.answer_tokens
        if question.schema is not None and _SCHEMA not in self.refused:
            schema = {"name": "answer", "strict": True, "schema": question.schema}
            body[_SCHEMA] = {"type": "json_schema", "json_schema": schema}
        if question.tools:
            body["tools"] = backend.described(question.tools)
        if streams and _STREAM not in self.refused:
            body[_STREAM] = True
            if _COUNTED not in self.refused:
                body[_COUNTED] = {"include_usage": True}
        return body

    def _has_simpler_form(self, answered: server.Answered, body: Mapping[str, Any]) -> bool:
        """Whether the server refused a part, such as a temperature; it is left out from now on."""
        if answered.status not in (400, 422):
            return False
        named = str(answered.error.get("param") or "")
        refusal = str(answered.value)
        # a question that is too long for the context is so in whatever form
        likely = [part for part in _LIKELY if part in body and "context" not in refusal]
        likely.sort(key=lambda part: part not in refusal)
        if named in _NAMED:
            likely = [named] if named in body else []
        self.refused.update(likely[:1])
        return bool(likely)


OLLAMA_PORT = 11434
MAX_CHARS_A_TOKEN = 8  # no text has more: where a server counts fewer tokens, it cut the question


class OllamaBackend(OpenAIBackend):
    """A model on an Ollama server, by its chat completions. It answers without thinking first."""

    kind = "ollama"

    def ask(
        self, question: backend.ModelQuestion, take: backend.Take | None = None
    ) -> backend.Reply:
        """Return the reply of one request. Raises ModelCallError, also where Ollama cut the question."""
        reply = super().ask(question, take)
        if reply.input_tokens and reply.input_tokens * MAX_CHARS_A_TOKEN < question.chars:
            raise ModelCallError(
                f"{self.name} read only {reply.input_tokens:,} tokens of the question",
                "start Ollama with a larger context: OLLAMA_CONTEXT_LENGTH=32768 ollama serve",
            )
        return reply

    def _server(self) -> tuple[str, str, str]:
        url = ollama_url(self.config.ollama_host)
        parts = urlsplit(url)
        is_safe = parts.scheme == "https" or model_http.is_this_machine(parts.hostname or "")
        return f"{url}/v1/chat/completions", "OLLAMA_HOST", "OLLAMA_API_KEY" if is_safe else ""

    def _body(self, question: backend.ModelQuestion, streams: bool) -> dict[str, Any]:
        body = super()._body(question, streams)
        return body if _EFFORT in self.refused else body | {_EFFORT: "none"}


def ollama_url(host: str) -> str:
    """Return the address for a value of OLLAMA_HOST: a name, a port, a URL. Raises SettingsError."""
    named = model_http.asked(host.strip().rstrip("/"))
    if "://" in named:
        return named
    try:
        parts = urlsplit(f"//{named}")
        name, port = parts.hostname or "127.0.0.1", parts.port or OLLAMA_PORT
    except ValueError:
        raise SettingsError(
            f"OLLAMA_HOST is no address: {without_key(host)!r:.80}",
            "set it to a host, a host:port or a URL",
        ) from None
    return f"http://{f'[{name}]' if ':' in name else name}:{port}{parts.path}"


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
