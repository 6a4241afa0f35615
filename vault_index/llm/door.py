"""A door to language models: one question, one attempt, one reply. `CountedModel` does the rest.

A question and its reply are values, so that streams and tools can become fields of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

MAX_ANSWER_TOKENS = 4000  # of one answer: some 25 lessons' worth of JSON
ENDED, CUT, DECLINED = "ended", "cut", "declined"  # why a reply ends


@dataclass(frozen=True, slots=True)
class Question:
    """A prompt. `schema`, which is in it already, is for servers that hold a model to one."""

    system: str
    prompt: str
    schema: dict[str, Any] | None = None

    @property
    def chars(self) -> int:
        return len(self.system) + len(self.prompt)


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's text, why it ended, and what it took; None where the server does not say."""

    text: str
    end: str = ENDED
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None  # dollars


class Door(Protocol):
    """A model on a server, or a program that asks one."""

    @property
    def name(self) -> str:
        """The name in the settings: `ollama:MODEL`."""

    @property
    def starts_slowly(self) -> bool:
        """Whether a call takes long before the model begins."""

    @property
    def answer_tokens(self) -> int:
        """Tokens that an answer has at most, those of thinking included."""

    def ask(self, question: Question) -> Reply:
        """Return the reply of one attempt.

        Raises ModelCallError, as `PassingError` where another attempt may go better.
        """
