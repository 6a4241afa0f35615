"""Events cut into turns: a prompt, and what the agent said and did until the next one.

Texts are redacted here, before anything shortens them; of the results of tools only those of errors,
tests and commits are kept. A turn holds nothing of the turns before it but the end of what was said.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from vault_index.transcripts import events, tools, vocabulary
from vault_index.transcripts.events import Event

Redact = Callable[[str], str]
MAX_CHARS = 200_000  # of a text; a person's paste or an agent's answer is far shorter
_SPARE = 10_000  # characters more go to `redact`, so that no half of a secret remains at the cut
RESULT_CHARS = 20_000  # kept from either end of a result, before its lines are chosen
MAX_VALUES = 512  # of inputs that are remembered: paths come again and again
GO_ON = 20  # characters; after an interruption a shorter prompt ("continue") corrects nothing
_OWN = ("/.claude/plans/", "/.claude/projects/")  # files of the agent
CONTEXT_CHARS = 800  # of what the agent had said before a prompt
_MARKS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|</?tool_use_error>")


@dataclass(slots=True)
class Said:
    """A text of the agent."""

    text: str
    uuid: str
    at: str
    is_question: bool = False  # with choices: no statement


@dataclass(slots=True)
class Call:
    """A call of a tool, with its result if there is one. `text` is kept of few results."""

    tool: str
    kind: str  # of `tools`: EDIT, READ, SEARCH, SHELL...
    id: str
    uuid: str
    at: str
    folder: str
    in_subagent: bool
    input: dict[str, Any]  # what is kept of it, redacted
    edits: Sequence[tools.Edit] = ()  # that it asks for, as they are
    is_done: bool = False
    is_error: bool = False
    status: int | None = None
    text: str = ""
    printed: str = ""  # the end of what a check without an error printed, as it is
    result_uuid: str = ""

    @property
    def command(self) -> str:
        """The command of a shell, "" of another tool."""
        return str(self.input.get("command") or "")

    @property
    def files(self) -> list[str]:
        """The paths of files that it reads or changes."""
        if self.kind in (tools.EDIT, tools.READ):
            return tools.files_of(self.input)
        return tools.reads(self.command)

    @property
    def commits(self) -> list[str]:
        """The subjects of the commits that it made."""
        if self.is_error or not self.is_done:
            return []
        return tools.subjects(self.command, self.text)

    @property
    def is_done_edit(self) -> bool:
        """Whether it changed a file: neither refused nor failed."""
        return self.kind == tools.EDIT and self.is_done and not self.is_error

    @property
    def is_change(self) -> bool:
        """Whether it changed something of the work: a file, not the agent's own plan."""
        if self.kind == tools.SHELL:
            return self.is_done and not self.is_error and tools.is_change(self.command)
        return self.is_done_edit and not any(own in path for path in self.files for own in _OWN)

    @property
    def has_failed(self) -> bool:
        """Whether it failed, by its status or, of a check behind a pipe, by what it printed."""
        if self.is_error:
            return not vocabulary.is_mundane_error(self.text)
        return bool(self.text) and tools.is_check(self.command) and tools.says_failed(self.text)


@dataclass(slots=True)
class Aside:
    """A text of a program: what a `!cmd` printed, or why a hook stopped something."""

    kind: str  # events.PRINTED | STOPPED
    text: str
    place: int  # how many steps of the turn are before it


@dataclass(slots=True)
class Turn:
    """A prompt (None before the first one) and the steps after it."""

    prompt: Event | None = None
    context: str = ""
    steps: list[Said | Call] = field(default_factory=list)
    asides: list[Aside] = field(default_factory=list)
    ended: str = ""  # when the last event was
    branch: str = ""
    is_interruption: bool = False  # the prompt comes after the user stopped the agent

    @property
    def is_correction(self) -> bool:
        """Whether the user corrects the agent, or refuses what it was about to do."""
        prompt = self.prompt
        return prompt is not None and (
            prompt.kind == events.REFUSAL
            or corrects(
                *(prompt.text, self.context, prompt.kind), is_interruption=self.is_interruption
            )
        )

    @property
    def texts(self) -> list[Said]:
        """Return what the agent said."""
        return [step for step in self.steps if isinstance(step, Said)]

    @property
    def calls(self) -> list[Call]:
        """Return what the agent did."""
        return [step for step in self.steps if isinstance(step, Call)]


def corrects(prompt: str, answers: str, origin: str, *, is_interruption: bool = False) -> bool:
    """Whether a typed prompt says that what the agent had said, or was doing, is wrong."""
    if origin not in events.TYPED or not answers:
        return False
    return vocabulary.corrects(prompt) or (is_interruption and len(prompt) > GO_ON)


class Turns:
    """Collects events; `take` returns a turn when the next one begins, `end` the last."""

    def __init__(self, redact: Redact, said: str = "", *, is_interrupted: bool = False) -> None:
        self._redact = redact
        self._clean_value = lru_cache(maxsize=MAX_VALUES)(self._clean)
        self.said = said  # the end of what the agent said last: a prompt answers that
        self.is_interrupted = is_interrupted  # by the user, since the last prompt
        self._turn = Turn()
        self._open: dict[str, Call] = {}  # calls without a result yet

    def take(self, event: Event) -> Turn | None:
        """Add an event; return the turn that it ends, if it begins another."""
        finished = None
        if event.kind in events.PROMPTS:
            finished = self._begin(event)
        elif event.kind == events.TEXT and not event.in_subagent:
            self._say(event, event.text)
        elif event.kind == events.INTERRUPT:
            self.is_interrupted = True
        elif event.kind in (events.PRINTED, events.STOPPED):
            aside = Aside(event.kind, self._clean(event.text), len(self._turn.steps))
            self._turn.asides.append(aside)
        elif event.kind == events.TOOL_CALL:
            self._call(event)
        elif event.kind == events.TOOL_RESULT:
            self._result(event)
        self._turn.ended = event.at or self._turn.ended
        self._turn.branch = event.branch or self._turn.branch
        return finished

    def end(self) -> Turn | None:
        """Return the turn so far, None if it is empty."""
        turn, self._turn = self._turn, Turn()
        return turn if turn.prompt or turn.steps else None

    def _begin(self, prompt: Event) -> Turn | None:
        turn = Turn(replace(prompt, text=self._clean(prompt.text)), self.said)
        turn.is_interruption, self.is_interrupted = self.is_interrupted, False
        if prompt.kind in events.OPENING:  # the agent was idle: nothing is under way
            self._open.clear()
        else:  # what is under way ends in this turn
            turn.steps = [*self._open.values()]
            under_way = set(map(id, turn.steps))
            self._turn.steps = [step for step in self._turn.steps if id(step) not in under_way]
        finished, self._turn = self.end(), turn
        return finished

    def _say(self, event: Event, text: str, *, is_question: bool = False) -> None:
        text = self._clean(text)
        if not text:
            return
        self._turn.steps.append(Said(text, event.uuid, event.at, is_question))
        self.said = vocabulary.tail(f"{self.said}\n\n{text}", CONTEXT_CHARS)

    def _call(self, event: Event) -> None:
        kind = tools.kind_of(event.tool)
        edits = tools.edits_of(event.input) if kind == tools.EDIT else ()
        values = tools.shortened_input(kind, event.input, edits, self._clean_value)
        call = Call(
            *(event.tool, kind, event.call, event.uuid, event.at, event.folder),
            in_subagent=event.in_subagent,
            input=values,
            edits=edits,
        )
        self._turn.steps.append(call)
        self._open[event.call] = call
        if not event.in_subagent and (shown := tools.shown_to_user(event.tool, event.input)):
            self._say(event, shown, is_question=event.tool == tools.QUESTION)

    def _result(self, event: Event) -> None:
        call = self._open.pop(event.call, None)
        if call is None:
            return
        call.is_done, call.is_error, call.status = True, event.is_error, event.status
        call.result_uuid = event.uuid
        has_ended = call.kind == tools.SHELL and not call.input.get("is_background")
        if call.status is None and not event.is_error and has_ended:
            call.status = 0
        text = event.text
        if not event.is_error and tools.is_check(call.command):
            call.printed = text[-RESULT_CHARS:]
        if len(text) > 2 * RESULT_CHARS:
            text = f"{text[:RESULT_CHARS]}\n[...]\n{text[-RESULT_CHARS:]}"
        if event.is_error or tools.is_result_needed(call.kind, call.input, text):
            call.text = self._clean(_MARKS.sub("", text))

    def _clean(self, text: str) -> str:
        """Return a text as the journal may keep it."""
        text = events.without_own_text(text[: MAX_CHARS + _SPARE]).strip()
        text = self._redact(text)
        return text if len(text) <= MAX_CHARS else f"{text[:MAX_CHARS]}\n[...]"
