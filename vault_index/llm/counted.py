"""A model behind a door: within the day's allowance, tried again, its answers checked and counted."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from vault_index.errors import ModelAwayError, ModelCallError, ModelRefusedError, VaultError
from vault_index.llm import answer, retrying
from vault_index.llm.allowance import Allowance
from vault_index.llm.door import CUT, DECLINED, Door, Question, Reply
from vault_index.llm.retrying import PassingError, Sleep
from vault_index.llm.usage import Usage

CHARS_A_TOKEN = 4


class CountedModel:
    """What `open_model` opens. `usage` is what the calls of this object took so far."""

    def __init__(self, door: Door, allowance: Allowance, sleep: Sleep = time.sleep) -> None:
        self.name = door.name
        self.starts_slowly = door.starts_slowly
        self.usage = Usage()
        self._door = door
        self._allowance = allowance
        self._sleep = sleep

    def complete(self, system: str, prompt: str) -> str:
        """Return the answer to a prompt, never empty. Raises ModelCallError."""
        return self._ask(Question(system, prompt))

    def complete_json(
        self, system: str, prompt: str, keys: Mapping[str, Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Return the answer as an object with exactly these keys. Raises ModelCallError.

        The schema is in the prompt, whatever the door: not every server knows another way, some
        that say they do ignore it, and an answer is checked in any case.
        """
        schema = answer.schema_of(keys)
        asked = f"{prompt}\n\nAnswer with one JSON object of this schema:\n{json.dumps(schema)}"
        return answer.parse(self._ask(Question(system, asked, schema)), keys, self.name)

    def _ask(self, question: Question) -> str:
        reply = retrying.call(lambda: self._attempt(question), self._sleep)
        text = reply.text.strip()
        if reply.end == DECLINED or answer.is_refusal(text):
            raise ModelRefusedError(f"{self.name} declined to answer", "choose another model")
        if reply.end == CUT:
            tokens = self._door.answer_tokens
            raise ModelCallError(
                f"{self.name} did not come to an end in {tokens} tokens", "choose another model"
            )
        if not text:
            raise ModelCallError(f"{self.name} answered with nothing", "choose another model")
        if len(text) > answer.MAX_CHARS:
            raise ModelCallError(
                f"{self.name} answered with more than {answer.MAX_CHARS:,} characters",
                "choose another model",
            )
        return text

    def _attempt(self, question: Question) -> Reply:
        """Return the reply of one call, written down before and after it. Raises ModelCallError."""
        expected = question.chars // CHARS_A_TOKEN + 1
        booking = self._allowance.book(expected + self._door.answer_tokens)
        began = time.monotonic()
        try:
            reply = self._door.ask(question)
        except VaultError as error:
            final = error.final if isinstance(error, PassingError) else error
            if isinstance(final, ModelCallError) and not isinstance(final, ModelAwayError):
                self.usage += Usage(1, expected, 0, time.monotonic() - began)
            else:  # no model did anything
                self._allowance.settle(booking, 0, calls=0)
            raise
        taken, given = reply.input_tokens, reply.output_tokens
        taken = expected if taken is None else taken
        given = len(reply.text) // CHARS_A_TOKEN + 1 if given is None else given
        self._allowance.settle(booking, taken + given)
        self.usage += Usage(1, taken, given, time.monotonic() - began, reply.cost)
        return reply
