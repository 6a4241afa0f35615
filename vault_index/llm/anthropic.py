"""The Messages API over plain HTTP: `anthropic:MODEL`.

Structured answers come by the schema in the prompt, as through every door: a forced tool would cost
its description in each call, and gateways that speak this API do not all know tools.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vault_index.errors import ModelAwayError
from vault_index.llm.door import CUT, DECLINED, ENDED, MAX_ANSWER_TOKENS, Question, Reply
from vault_index.llm.server import TIMEOUT_SECONDS, Address, Answered, Server, checked, tokens_of

URL = "https://api.anthropic.com"
VERSION = "2023-06-01"  # of the API
KEY, BASE = "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"
_ENDS = {
    "end_turn": ENDED,
    "stop_sequence": ENDED,
    "max_tokens": CUT,
    "model_context_window_exceeded": CUT,
    "refusal": DECLINED,
}


class AnthropicDoor:
    """A model behind the Messages API. Key and server come from the user's environment."""

    starts_slowly = False
    answer_tokens = MAX_ANSWER_TOKENS

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

    def ask(self, question: Question) -> Reply:
        """Return the reply of one request. Raises ModelCallError."""
        if not self._key:
            raise ModelAwayError(f"{self.name}: there is no key", f"set {KEY} in the environment")
        body: dict[str, Any] = {
            "model": self._model,
            "max_tokens": MAX_ANSWER_TOKENS,
            "messages": [{"role": "user", "content": question.prompt}],
        }
        if question.system:  # an empty one is refused
            body["system"] = question.system
        answered = self._server.post(body)
        reply = _reply(answered)
        if reply is None:
            raise self._server.failure(answered)
        return reply


def _reply(answered: Answered) -> Reply | None:
    """Return the reply in an answer, None if there is no such thing."""
    value = answered.value
    blocks, end = value.get("content"), _ENDS.get(str(value.get("stop_reason")))
    if answered.status != 200 or not isinstance(blocks, list) or end is None:
        return None
    texts = [
        block["text"]
        for block in blocks
        if isinstance(block, dict) and isinstance(block.get("text"), str)
    ]
    usage = value.get("usage")
    taken = [
        tokens_of(usage, key)
        for key in ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    ]
    return Reply(
        "".join(texts),
        end,
        None if taken[0] is None else sum(tokens or 0 for tokens in taken),
        tokens_of(usage, "output_tokens"),
    )
