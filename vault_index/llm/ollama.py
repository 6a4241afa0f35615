"""Language models of an Ollama server, through the `ollama` package: `ollama:MODEL`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vault_index import ollama_client
from vault_index.errors import ModelAwayError, ModelCallError
from vault_index.llm.door import CUT, ENDED, MAX_ANSWER_TOKENS, Question, Reply
from vault_index.llm.retrying import PassingError, passes
from vault_index.llm.server import TIMEOUT_SECONDS
from vault_index.ollama_client import OllamaClient

if TYPE_CHECKING:
    import ollama

CHARS_A_TOKEN = 2.5  # few, so that the context holds any language
CONTEXT_STEP = 2048  # tokens: another context size loads the model again
# no such model, the queue is full
_AWAY = (ollama_client.NOT_REACHED, ollama_client.NO_ADDRESS, 404, 429, 503)
_PASSING = (ollama_client.NOT_REACHED, ollama_client.CUT)


class OllamaDoor:
    """A model on an Ollama server. Answers are as repeatable as the server makes them.

    `host` is what `OLLAMA_HOST` may hold: a name, a port, a URL. Nothing is asked before first use.
    """

    starts_slowly = False
    answer_tokens = MAX_ANSWER_TOKENS

    def __init__(self, model: str, host: str, timeout: float = TIMEOUT_SECONDS) -> None:
        self.name = f"ollama:{model}"
        self._model = model
        self._server = OllamaClient(host, timeout)

    def ask(self, question: Question) -> Reply:
        """Return the reply of one request. Raises ModelCallError.

        The server holds the model to the schema, if it can; models in its cloud know it from the
        prompt alone.
        """
        messages = [
            {"role": "system", "content": question.system},
            {"role": "user", "content": question.prompt},
        ]
        options = {
            "temperature": 0,
            "num_predict": MAX_ANSWER_TOKENS,
            "num_ctx": _context(question.chars),  # else the server cuts the prompt
        }

        def ask(client: ollama.Client) -> Reply:
            response = client.chat(
                self._model, messages, format=question.schema, options=options, think=False
            )
            return Reply(
                response.message.content or "",
                CUT if response.done_reason == "length" else ENDED,
                response.prompt_eval_count,
                response.eval_count,
            )

        return self._server.call(ask, self._model, "take the model out of the settings", _error_of)


def _context(chars: int) -> int:
    """Return the tokens of context for a prompt and its answer, in steps."""
    tokens = chars / CHARS_A_TOKEN + MAX_ANSWER_TOKENS
    return CONTEXT_STEP * (int(tokens) // CONTEXT_STEP + 1)


def _error_of(status: int, message: str, hint: str) -> ModelCallError:
    error = (ModelAwayError if status in _AWAY else ModelCallError)(message, hint)
    return PassingError(error) if status in _PASSING or passes(status) else error
