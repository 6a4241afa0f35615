"""A door to language models: one question, one attempt, one reply. `CountedModel` does the rest."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

MAX_ANSWER_TOKENS = 4000  # of one answer: some 25 lessons' worth of JSON
ENDED, CUT, DECLINED = "ended", "cut", "declined"  # why a reply ends
USER, ASSISTANT, TOOL = "user", "assistant", "tool"  # whose turn it is

Take = Callable[[str], None]  # takes the next piece of an answer's text


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that a model may ask for. `parameters` is a JSON schema of its arguments."""

    name: str
    description: str
    parameters: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's wish to have a tool called. `arguments` is None where they are no JSON object."""

    id: str
    name: str
    arguments: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Turn:
    """A message of a conversation: a user's, a model's with its calls, or the result of one call."""

    role: str  # USER | ASSISTANT | TOOL
    text: str
    calls: tuple[ToolCall, ...] = ()
    call: str = ""  # id of the call that a TOOL turn answers


@dataclass(frozen=True, slots=True)
class Question:
    """A prompt, with what was said `before` and `after` it in the same conversation.

    `schema`, which is in the prompt already, is for servers that hold a model to one. Only a door that
    `can_call_tools` gets `tools`. Where `after` has calls and there are no tools, no more may be called.
    """

    system: str
    prompt: str
    schema: dict[str, Any] | None = None
    before: tuple[Turn, ...] = ()
    after: tuple[Turn, ...] = ()
    tools: tuple[Tool, ...] = ()

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The conversation in its order, without the system's words."""
        return (*self.before, Turn(USER, self.prompt), *self.after)

    @property
    def chars(self) -> int:
        """The characters of all that a model reads."""
        texts = [self.system, *(turn.text for turn in self.turns)]
        texts += [json.dumps(call.arguments) for turn in self.turns for call in turn.calls]
        for tool in self.tools:
            texts += [tool.name, tool.description, json.dumps(tool.parameters)]
        return sum(map(len, texts))


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's text, why it ended, and what it took; None where the server does not say."""

    text: str
    end: str = ENDED
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None  # dollars
    calls: tuple[ToolCall, ...] = ()  # tools that the model wants; its text may then be empty


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

    @property
    def can_call_tools(self) -> bool:
        """Whether it takes questions with tools; the model behind it may still refuse them."""

    def ask(self, question: Question, take: Take | None = None) -> Reply:
        """Return the reply of one attempt; `take` gets its text in pieces, as the model writes them.

        A door that cannot do so passes the whole text on at once. Raises ModelCallError, as
        `PassingError` where another attempt may go better; ModelToolsError where the model takes no
        tools. What `take` raises is no Exception and passes through.
        """

    def end(self) -> None:
        """End the call under way, from another thread."""
