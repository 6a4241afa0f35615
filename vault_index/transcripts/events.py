"""The events of a session, as every reader of transcripts reports it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from vault_index.hotpath import spool

# What a person typed. All but PROMPT stand apart in a transcript, and are easily missed.
PROMPT = "prompt"
QUEUED = "queued prompt"  # typed while the agent worked
BESIDE_RESULT = "prompt beside a tool result"
REFUSAL = "refusal"  # the reason that was typed when a tool call was refused
SLASH_COMMAND = "slash command"
SHELL_COMMAND = "shell command"  # `!cmd`
ANSWER = "answer"  # to a question of the agent
TYPED = frozenset({PROMPT, QUEUED, BESIDE_RESULT, REFUSAL, SLASH_COMMAND, SHELL_COMMAND, ANSWER})
# What no person typed, though it has the role of the user.
PLAN = "plan"  # "Implement the following plan:"
AUTOMATED = "automated prompt"  # of a program that runs the agent
INTERRUPT = "interrupt"
# Prompts that find the agent idle: no earlier tool call will have its result.
OPENING = frozenset({PROMPT, SLASH_COMMAND, SHELL_COMMAND, PLAN, AUTOMATED})
PROMPTS = TYPED | OPENING
TOLD = "told"  # to the agent, by another agent or by a summary of what went before
# What the agent did.
TEXT = "text"
TOOL_CALL = "tool call"
TOOL_RESULT = "tool result"
# What programs say beside it.
PRINTED = "printed"  # by a `!cmd`
STOPPED = "stopped"  # by a hook, with its reason

# The first line of each prompt that this product sends to an agent: such a session is not recorded.
MARKER = spool.MARKER
# Text that this product put into a session is no part of the journal: a lesson would be found as if
# somebody had said it there, and come back at the next prompt. A fence is left out wherever it is quoted.
_OPEN, _CLOSE = r"(?:<|\\u003c)", r"(?:>|\\u003e)"
_FENCE = re.compile(
    rf"(?s){_OPEN}lessons{_CLOSE}.*?{_OPEN}\\?/lessons{_CLOSE}"
    # cut off before its end: it fills its line, or is quoted in JSON
    rf"|{_OPEN}lessons{_CLOSE}(?:[ \t]*\n|\\n).*"
)
_TAGS = "system-reminder|ide_opened_file|ide_selection|ide_diagnostics"
_OF_PROGRAMS = re.compile(  # in a line of code that only names a tag it stays
    rf"(?sm)^<({_TAGS})>.*?(?:</\1>|\Z)|<({_TAGS})>[^\n]*?</\2>"
)


@dataclass(slots=True)
class TranscriptEvent:
    """One thing that happened. Nobody changes it; frozen it takes three times as long to make.

    `at` is ISO 8601 as the agent wrote it, "" if it did not.

    `uuid` names the transcript's record; several events may share one. A tool call has `tool`,
    `call` (its id) and `input`; a result has `call`, `is_error` and, if it says so, the exit `status`.
    `in_subagent` marks the work of a subagent inside a session's own file.
    """

    kind: str
    uuid: str
    at: str
    text: str = ""
    session: str = ""
    folder: str = ""
    branch: str = ""
    version: str = ""  # of the agent
    tool: str = ""
    call: str = ""
    input: dict[str, Any] = field(default_factory=dict)
    is_error: bool = False
    status: int | None = None
    images: int = 0
    in_subagent: bool = False


def is_internal(prompt: str) -> bool:
    """Whether a prompt is one that this product sends to an agent."""
    return prompt.lstrip().startswith(MARKER)


def without_own_text(text: str) -> str:
    """Return a text without fences, and without what programs put beside a person's words."""
    if "lessons" in text:
        text = _FENCE.sub("", text)
    if "<system-reminder>" in text or "<ide_" in text:
        text = _OF_PROGRAMS.sub("", text)
    return text


MAX_LINE = 32 * 1024 * 1024  # bytes; 20 MB were seen, a longer one is passed over
_DECODER = json.JSONDecoder()
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")  # `"\ud83d"`, with or without its other half
_BEGIN = re.compile(r"\S")


class TranscriptReader:
    """Turns lines of a transcript into events: a reader of each agent's.

    It goes on with the `state` of another one. `of_subagent`: the file is a subagent's own.
    """

    def __init__(
        self, state: Mapping[str, Any] | None = None, *, of_subagent: bool = False
    ) -> None:
        self.of_subagent = of_subagent
        self.unread = 0  # lines that are not JSON, and records of types that nobody described yet
        self.begin(state or {})

    def begin(self, state: Mapping[str, Any]) -> None:
        """Take up the state of another reader, empty for the beginning of a transcript."""

    @property
    def is_quiet(self) -> bool:
        """Whether another reader can go on here with `state` alone, if a prompt follows."""
        return True

    def state(self) -> dict[str, Any]:
        """Return the state for another reader to go on with: JSON, without anything that was typed."""
        return {}

    def events(self, line: bytes) -> Iterator[TranscriptEvent]:
        raise NotImplementedError

    def records(self, line: bytes) -> Iterator[dict[str, Any]]:
        """Yield the JSON objects of a line, which may hold several."""
        text = line.decode("utf-8", "replace")
        may_be_broken = b"\\u" in line and _HALF.search(line) is not None
        end = 0
        while begin := _BEGIN.search(text, end):
            try:
                record, end = _DECODER.raw_decode(text, begin.start())
            except (ValueError, RecursionError):  # a number of 5,000 digits is no JSONDecodeError
                self.unread += 1
                break
            if isinstance(record, dict):
                yield map_texts(record, _sound) if may_be_broken else record

    def end(self) -> Iterator[TranscriptEvent]:
        """Yield the events that only the end of the transcript decides."""
        yield from ()


def _sound(text: str) -> str:
    """Return a text without halves of characters, which no file can hold."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def map_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Return a JSON value with each of its texts changed, names too."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [map_texts(each, change) for each in value]
    if isinstance(value, dict):
        return {change(name): map_texts(each, change) for name, each in value.items()}
    return value
