"""Language models of an Ollama server, through the `ollama` package: `ollama:MODEL`."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any

from vault_index import model_http
from vault_index.config import Config
from vault_index.errors import ModelAwayError, ModelCallError, ModelToolsError
from vault_index.llm import backend
from vault_index.llm.server import PassingError, passes
from vault_index.model_http import OllamaClient

if TYPE_CHECKING:
    import ollama

CHARS_A_TOKEN = 2.5  # few, so that the context holds any language
CONTEXT_STEP = 2048  # tokens: another context size loads the model again
# no such model, the queue is full
_AWAY = (model_http.NOT_REACHED, model_http.NO_ADDRESS, 404, 429, 503)
_PASSING = (model_http.NOT_REACHED, model_http.CUT)


class OllamaBackend(backend.Backend):
    """A model on an Ollama server. Answers are as repeatable as the server makes them."""

    kind = "ollama"

    def __init__(
        self, model: str, config: Config, environ: Mapping[str, str], timeout: float = 0
    ) -> None:
        super().__init__(model, config, environ, timeout)
        self._server = OllamaClient(config.ollama_host, self.timeout, self.connection.follow)

    def ask(self, question: backend.Question, take: backend.Take | None = None) -> backend.Reply:
        """Return the reply of one request. Raises ModelCallError.

        The server holds the model to the schema, if it can; models in its cloud know it from the
        prompt alone.
        """
        steps = int(question.chars / CHARS_A_TOKEN + self.answer_tokens) // CONTEXT_STEP
        asked: dict[str, Any] = {
            "model": self.model,
            "messages": _messages(question),
            "tools": backend.described(question.tools),
            "format": question.schema,
            "options": {
                "temperature": self.config.llm.temperature or 0,
                "num_predict": self.answer_tokens,
                "num_ctx": CONTEXT_STEP * (steps + 1),  # else the server cuts the prompt
            },
            "think": False,
        }

        def ask(client: ollama.Client) -> backend.Reply:
            if take is None:
                return _read([client.chat(**asked)], None)
            pieces = client.chat(**asked, stream=True)
            assert isinstance(pieces, Generator)  # of the package: what can be closed
            with closing(pieces):
                return _read(pieces, take)

        def error_of(status: int, message: str, hint: str) -> ModelCallError:
            if question.tools and status in (400, 501) and backend.speaks_of_tools(message):
                return ModelToolsError(f"{self.name} takes no tools", "choose another model")
            error = (ModelAwayError if status in _AWAY else ModelCallError)(message, hint)
            return PassingError(error) if status in _PASSING or passes(status) else error

        return self._server.call(ask, self.model, "take the model out of the settings", error_of)


def _messages(question: backend.Question) -> list[dict[str, Any]]:
    names = backend.names_of(question.turns)
    messages: list[dict[str, Any]] = [{"role": "system", "content": question.system}]
    for turn in question.turns:
        if turn.role == backend.TOOL:
            name = names.get(turn.call, "")
            messages.append({"role": "tool", "content": turn.text, "tool_name": name})
            continue
        role = "assistant" if turn.role == backend.ASSISTANT else "user"
        calls = [
            {"function": {"name": call.name, "arguments": call.arguments or {}}}
            for call in turn.calls
        ]
        with_calls = {"tool_calls": calls} if calls else {}
        messages.append({"role": role, "content": turn.text, **with_calls})
    return messages


def _read(responses: Iterable[ollama.ChatResponse], take: backend.Take | None) -> backend.Reply:
    """Return the reply that comes in pieces, or whole. The model's thoughts before it are left out."""
    import httpx

    texts: list[str] = []
    wanted: list[ollama.Message.ToolCall] = []
    for response in responses:
        wanted += response.message.tool_calls or ()
        if text := response.message.content:
            texts.append(text)
            if take is not None:
                take(text)
        if response.done or take is None:
            calls = (
                backend.call_of("", call.function.name, dict(call.function.arguments), number)
                for number, call in enumerate(wanted, start=1)
            )
            return backend.Reply(
                "".join(texts),
                backend.CUT if response.done_reason == "length" else backend.ENDED,
                response.prompt_eval_count,
                response.eval_count,
                calls=tuple(call for call in calls if call is not None),
            )
    raise httpx.RemoteProtocolError("its answer has no end")
