"""Language models of an Ollama server, through the `ollama` package."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from vault_index.errors import ModelAwayError, ModelCallError, ModelRefusedError
from vault_index.llm import answer
from vault_index.ollama_client import OllamaClient

if TYPE_CHECKING:
    import ollama

TIMEOUT_SECONDS = 600.0  # a small model without a graphics card reads some 50 tokens a second
MAX_ANSWER_TOKENS = 2000
CHARS_A_TOKEN = 2.5  # few, so that the context holds any language
CONTEXT_STEP = 2048  # tokens: another context size loads the model again
_AWAY = (0, 404, 503)  # HTTP: not reached, no such model, the queue is full


class OllamaModel:
    """A model on an Ollama server. Answers are as repeatable as the server makes them.

    `host` is what `OLLAMA_HOST` may hold: a name, a port, a URL. Nothing is asked before first use.
    """

    def __init__(self, model: str, host: str, timeout: float = TIMEOUT_SECONDS) -> None:
        self.name = f"ollama:{model}"
        self._model = model
        self._server = OllamaClient(host, timeout)

    def complete(self, system: str, prompt: str) -> str:
        """Return the answer to a prompt, never empty. Raises ModelCallError."""
        text = self._chat(system, prompt, None)
        if answer.is_refusal(text):
            raise ModelRefusedError(f"{self.name} declined to answer", "choose another model")
        return text

    def complete_json(
        self, system: str, prompt: str, keys: Mapping[str, Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Return the answer as an object with exactly these keys. Raises ModelCallError.

        The server holds the model to the schema, if it can; it is in the prompt, too, as Ollama
        advises, since models in its cloud know no other way.
        """
        schema = answer.schema_of(keys)
        asked = f"{prompt}\n\nAnswer with one JSON object of this schema:\n{json.dumps(schema)}"
        return answer.parse(self._chat(system, asked, schema), keys, self.name)

    def _chat(self, system: str, prompt: str, schema: dict[str, Any] | None) -> str:
        messages = [{"role": "system", "content": system}, {"role": "user", "content": prompt}]
        options = {
            "temperature": 0,
            "num_predict": MAX_ANSWER_TOKENS,
            "num_ctx": _context(len(system) + len(prompt)),  # else the server cuts the prompt
        }

        def ask(client: ollama.Client) -> tuple[str, str]:
            response = client.chat(
                self._model, messages, format=schema, options=options, think=False
            )
            return (response.message.content or "").strip(), response.done_reason or ""

        text, reason = self._server.call(
            ask, self._model, "take the model out of the settings", _error_of
        )
        if reason == "length":
            raise ModelCallError(
                f"{self.name} did not come to an end in {MAX_ANSWER_TOKENS} tokens",
                "choose another model",
            )
        if not text:
            raise ModelCallError(f"{self.name} answered with nothing", "choose another model")
        return text


def _context(chars: int) -> int:
    """Return the tokens of context for a prompt and its answer, in steps."""
    tokens = chars / CHARS_A_TOKEN + MAX_ANSWER_TOKENS
    return CONTEXT_STEP * (int(tokens) // CONTEXT_STEP + 1)


def _error_of(status: int, message: str, hint: str) -> ModelCallError:
    return (ModelAwayError if status in _AWAY else ModelCallError)(message, hint)
