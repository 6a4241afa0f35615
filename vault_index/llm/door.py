"""A door to language models: one question, one attempt, one reply. `CountedModel` does the rest."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
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
        tools. `take` raises a BaseException only, which passes through.
        """

    def end(self) -> None:
        """End the call under way, from another thread."""


_TOOLS = re.compile(r"(?i)\btools?\b|\btool_choice\b|\bfunction.?call")


def described(tools: Iterable[Tool]) -> list[dict[str, Any]]:
    """Return tools as chat completions and Ollama want them."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
            },
        }
        for tool in tools
    ]


def names_of(turns: Iterable[Turn]) -> dict[str, str]:
    """Return the names of the tools that were called in a conversation, by the ids of the calls."""
    return {call.id: call.name for turn in turns for call in turn.calls}


def call_of(call_id: Any, name: Any, arguments: Any, number: int) -> ToolCall | None:
    """Return a call in a model's answer, None without a name; `number` makes an id where it has none."""
    if not isinstance(name, str) or not name:
        return None
    has_id = isinstance(call_id, str) and call_id
    return ToolCall(call_id if has_id else f"call_{number}", name, _object(arguments))


def speaks_of_tools(said: object) -> bool:
    """Whether a server that refused a question names its tools as the reason.

    No two servers say it alike. An error that names them for another reason comes again when the
    question is asked without them.
    """
    return _TOOLS.search(str(said)) is not None


def _object(arguments: Any) -> dict[str, Any] | None:
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments) if arguments.strip() else {}
        except (ValueError, RecursionError):
            return None
    return arguments if isinstance(arguments, dict) else None


@dataclass(frozen=True, slots=True)
class Usage:
    """Calls and what they took. `cost` is in dollars, None where nobody says; `seconds` of waiting.

    Tokens are those that the server counted, else an estimate: four characters a token.
    """

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    cost: float | None = None

    def __add__(self, other: Usage) -> Usage:
        costs = [cost for cost in (self.cost, other.cost) if cost is not None]
        return Usage(
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.seconds + other.seconds,
            sum(costs) if costs else None,
        )
