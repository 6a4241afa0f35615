"""Any server with OpenAI's chat completions, over plain HTTP: `openai:MODEL` at [llm] openai_url.

llama.cpp, vLLM, LM Studio and gateways speak it, none of them all of it: what a server refuses with
status 400 or 422 is asked in a simpler form, for this question and those after it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vault_index.config import Config
from vault_index.errors import SettingsError
from vault_index.llm.door import CUT, DECLINED, ENDED, MAX_ANSWER_TOKENS, Question, Reply
from vault_index.llm.server import TIMEOUT_SECONDS, Address, Answered, Server, checked, tokens_of

KEY, SETTING = "OPENAI_API_KEY", "openai_url of [llm]"
_SCHEMA, _REPEATABLE, _LIMIT = "response_format", "temperature", "max_tokens"
_ENDS = {"length": CUT, "content_filter": DECLINED}  # all else: it came to its end


class OpenAIDoor:
    """A model behind chat completions. A server of one's own needs no key."""

    starts_slowly = False
    answer_tokens = MAX_ANSWER_TOKENS

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

    def ask(self, question: Question) -> Reply:
        """Return the reply of one request that the server takes. Raises ModelCallError."""
        while True:
            body = self._body(question)
            answered = self._server.post(body)
            reply = _reply(answered)
            if reply is not None:
                return reply
            refused = _refused_of(answered, body)
            if not refused:
                raise self._server.failure(answered)
            self._refused.add(refused)

    def _body(self, question: Question) -> dict[str, Any]:
        system = [{"role": "system", "content": question.system}] if question.system else []
        body: dict[str, Any] = {
            "model": self._model,
            "messages": [*system, {"role": "user", "content": question.prompt}],
        }
        if _REPEATABLE not in self._refused:
            body[_REPEATABLE] = 0
        limit = "max_completion_tokens" if _LIMIT in self._refused else _LIMIT
        body[limit] = MAX_ANSWER_TOKENS
        if question.schema is not None and _SCHEMA not in self._refused:
            schema = {"name": "answer", "strict": True, "schema": _closed(question.schema)}
            body[_SCHEMA] = {"type": "json_schema", "json_schema": schema}
        return body


def _refused_of(answered: Answered, body: Mapping[str, Any]) -> str:
    """Return the part of a request that the server does not take, "" if it is another trouble.

    Models that reason take neither a temperature nor `max_tokens`, and the server names the one.
    """
    if answered.status not in (400, 422):
        return ""
    named = str(answered.error.get("param") or "")
    if named in (_REPEATABLE, _LIMIT):
        return named if named in body else ""
    return _SCHEMA if _SCHEMA in body else ""


def _reply(answered: Answered) -> Reply | None:
    """Return the reply in an answer, None if there is no such thing."""
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
    )


def _closed(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema whose objects have no other properties, as `strict` wants it."""
    closed = dict(schema)
    if "properties" in schema:
        closed["properties"] = {name: _closed(of) for name, of in schema["properties"].items()}
        closed["additionalProperties"] = False
    if "items" in schema:
        closed["items"] = _closed(schema["items"])
    return closed
