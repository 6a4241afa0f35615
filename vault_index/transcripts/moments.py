"""Moments: an agent's events become, once, what was said and done in a session, for all who read it.

    PERSON      a prompt, as typed; `origin` says in which way
    AGENT       a text of the agent
    RAN         a command that ended well; of one that commits `text` has the subjects
    CALLED      a call of another tool: `text` is what it looked for, or its todos
    EDIT        a changed piece of a file, lines with - and +
    NEW FILE    a file that was written whole
    FAILED      a command or another call that failed, with its output, or was stopped by a hook
    REFUSED     a call that the person refused, with the change that it asked for
    OPEN        a call that has no result yet, or did not run for another one's sake

Texts are redacted and free of what this product injected before anything shortens them. Journal and
learning look at the same moments, and neither looks at a transcript.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from vault_index.check.redact import redact, redact_change
from vault_index.text import blocks, failure
from vault_index.transcripts import events, tools, vocabulary
from vault_index.transcripts.events import TranscriptEvent

PERSON, AGENT, RAN, FAILED = "PERSON", "AGENT", "RAN", "FAILED"
EDIT, NEW_FILE = "EDIT", "NEW FILE"
CALLED, REFUSED, OPEN = "CALLED", "REFUSED", "OPEN"
CHANGES = (EDIT, NEW_FILE)
HOOK = "a hook stopped it"
QUESTION = "question"  # the origin of a text that asks the person, with choices: no statement

MAX_CHARS = 200_000  # of a text; a person's paste or an agent's answer is far shorter
_SPARE = 10_000  # characters more go to `redact`, so that no half of a secret remains at the cut
RESULT_CHARS = 40_000  # looked at of a result, at its two ends
MAX_OUTPUT, MAX_CHANGE = 10_000, 20_000  # characters that are kept of an output, and of a change
MAX_VALUES = 512  # of inputs that are remembered: paths come again and again
MAX_EARLY = 8  # results that wait for their call
MAX_LINES = 2_000  # of a text that is compared line by line; a longer one is all new
MIN_ANSWER = 60  # characters of an answer without work that say something
GO_ON = 20  # characters; after an interruption a shorter prompt ("continue") corrects nothing
_OWN = ("/.claude/plans/", "/.claude/projects/")  # files of the agent
MARKS = re.compile(r"</?tool_use_error>")
_OF_PROGRAM = re.compile(  # commands to the agent's program, not to the agent
    r"/(?:add-dir|agents|clear|compact|config|context|cost|doctor|effort|exit|export|fast|help|hooks|ide"
    r"|login|logout|mcp|memory|model|output-style|permissions|plugin|quit|release-notes|rename|resume"
    r"|rewind|status(?:line)?|terminal-setup|theme|upgrade|usage|vim)(?:\s|\Z)"
)
_CREATED = re.compile(r"Task #(\w+) created")
_CUT = "\n[...]\n"


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that was said or done. `about` is its command, the path of its file, or its tool.

    `number` counts the prompts of a session from 1; what follows one has its number, 0 before the first.
    `uuid` names the transcript's record, `result` a result which says more.
    """

    kind: str
    text: str = ""
    about: str = ""
    is_routine: bool = False  # a command that only reads, a failure of a tool that says nothing
    part: int = (
        0  # of the diff of a file: later ones go first; of a call that changes several files
    )
    origin: str = ""  # of what a person said: the kind of its event, such as `events.REFUSAL`
    is_correction: bool = False  # of the agent, by a person's words
    number: int = 0
    place: int = 0  # in the session
    at: str = ""  # as the agent wrote it
    uuid: str = ""
    result: str = ""
    branch: str = ""
    tool: str = ""  # of a call
    status: int | None = None  # of a command: its exit status; None if nobody knows it
    files: tuple[str, ...] = ()  # that a call read, relative to the session's folder
    in_subagent: bool = False

    @property
    def is_call(self) -> bool:
        return bool(self.tool)

    @property
    def command(self) -> str:
        return self.about if tools.kind_of(self.tool) == tools.SHELL else ""

    @property
    def has_failed(self) -> bool:
        """Whether a call failed, and not in a way that says nothing of the work."""
        return self.kind == FAILED and self.is_call and not self.is_routine

    @property
    def is_error(self) -> bool:
        """Whether its result is an error, and not only a text that says so."""
        is_failure = self.kind == FAILED and self.status != 0
        return self.is_call and (is_failure or self.kind == REFUSED or self._is_aborted)

    @property
    def _is_aborted(self) -> bool:
        return self.kind == OPEN and self.text != ""

    @property
    def is_change(self) -> bool:
        """Whether it changed something of the work: a file, not the agent's own plan."""
        if self.kind == RAN:
            return tools.is_change(self.about)
        return self.kind in CHANGES and not any(folder in f"/{self.about}" for folder in _OWN)

    @property
    def commits(self) -> list[str]:
        return self.text.splitlines() if self.kind == RAN else []

    def sides(self) -> tuple[str, str]:
        lines = self.text.splitlines()
        removed, added = ([line[1:] for line in lines if line[:1] == sign] for sign in "-+")
        return "\n".join(removed), "\n".join(added)


def repairs(moments: Sequence[Moment]) -> Iterator[tuple[int, int]]:
    """Yield the indexes of a call that failed last, and of the call that passed after a change."""
    waiting: dict[str, tuple[int, int]] = {}
    changed = 0
    for index, each in enumerate(moments):
        changed += each.is_change
        check = tools.same_as(each.about.removeprefix("!")) if each.about else ""
        if each.kind == FAILED and check and not each.is_routine:
            if tools.is_check(each.about) or check not in waiting:
                waiting[check] = index, changed
        elif each.kind == RAN and check in waiting:
            failed, before = waiting.pop(check)
            if changed > before:
                yield failed, index


@dataclass(slots=True)
class _PendingCall:
    """A call of a tool that waits for its result."""

    event: TranscriptEvent
    kind: str  # of `tools`: EDIT, READ, SEARCH, SHELL...
    input: dict[str, Any]  # what is kept of it, redacted
    edits: Sequence[tools.Edit] = ()
    done: TranscriptEvent | None = None
    text: str = ""  # of its result, redacted; kept of few
    output: str = ""  # the same where it says nothing of the work, and is kept all the same

    @property
    def command(self) -> str:
        return str(self.input.get("command") or "")


@dataclass(slots=True)
class _Turn:
    """A prompt, None before the first one, and the steps after it."""

    prompt: Moment | None = None
    steps: list[Moment | _PendingCall] = field(default_factory=list)


class Moments:
    """Takes the events of a session; `take` returns the moments of the turn that an event ends.

    `folder` is where the session began. `state` is another reader's, from which it goes on. With
    `outputs` the text of a call is all that it printed, and what other agents and a compaction told the
    agent is an agent's.
    """

    def __init__(
        self, folder: str = "", state: Mapping[str, Any] | None = None, *, outputs: bool = False
    ) -> None:
        state = state or {}
        self._outputs = outputs
        self._clean_value = lru_cache(maxsize=MAX_VALUES)(self._clean)
        self._folder = folder
        self._number = int(state.get("number", 0))  # of the last prompt
        self.place = int(state.get("place", 0))  # of the next moment
        self._has_answered = state.get("answered") is True  # the agent said something
        self._is_interrupted = state.get("interrupted") is True  # since the last prompt
        self._turn = _Turn()
        self._open: dict[str, _PendingCall] = {}  # calls without a result yet
        self._early: dict[str, TranscriptEvent] = {}  # results that were written before their call

    def state(self) -> dict[str, Any]:
        """Return the state for another one to go on with where a prompt begins a turn: JSON."""
        return {
            "number": self._number,
            "place": self.place,
            "answered": self._has_answered,
            "interrupted": self._is_interrupted,
        }

    def take(self, event: TranscriptEvent) -> list[Moment]:
        self._folder = self._folder or event.folder
        if event.kind in events.PROMPTS:
            return self._begin(event)
        if (event.kind == events.TEXT and not event.in_subagent) or (
            event.kind == events.TOLD and self._outputs
        ):
            self._say(event, event.text)
        elif event.kind == events.INTERRUPT:
            self._is_interrupted = True
        elif event.kind in (events.PRINTED, events.STOPPED):
            self._aside(event)
        elif event.kind == events.TOOL_CALL:
            self._call(event)
        elif event.kind == events.TOOL_RESULT:
            self._result(event)
        return []

    def end(self) -> list[Moment]:
        turn, self._turn = self._turn, _Turn()
        prompt, steps = turn.prompt, turn.steps
        if prompt and events.is_internal(prompt.text):
            return []
        if prompt and prompt.origin == events.SLASH_COMMAND and _OF_PROGRAM.match(prompt.text):
            prompt, steps = None, [step for step in steps if isinstance(step, _PendingCall)]
        elif prompt and prompt.origin == events.SLASH_COMMAND and " " not in prompt.text:
            chars = sum(len(step.text) for step in steps if isinstance(step, Moment))
            if chars < MIN_ANSWER and not any(isinstance(step, _PendingCall) for step in steps):
                return []  # a bare command that led to nothing
        ended: list[Moment] = []
        if prompt and prompt.text:
            self._number += 1
            ended.append(prompt)
        for step in steps:
            ended += [step] if isinstance(step, Moment) else self._of_call(step)
        self.place += len(ended)
        first = self.place - len(ended)
        return [
            replace(m, number=self._number, place=position)
            for position, m in enumerate(ended, first)
        ]

    def _begin(self, event: TranscriptEvent) -> list[Moment]:
        images = f"[{'images' if event.images > 1 else 'image'} without text]"
        text = self._clean(event.text) or (images if event.images else "")
        turn = _Turn(self._moment(PERSON, event, text=text, origin=event.kind))
        if event.kind in events.OPENING:  # the agent was idle: nothing is under way
            self._open.clear()
            self._early.clear()
        else:  # what is under way ends in this turn
            turn.steps = [*self._open.values()]
            under_way = set(map(id, turn.steps))
            self._turn.steps = [step for step in self._turn.steps if id(step) not in under_way]
        finished, self._turn = self.end(), turn
        if turn.prompt and event.kind in events.TYPED and self._has_answered:
            stops = self._is_interrupted and len(text) > GO_ON
            is_correction = event.kind == events.REFUSAL or vocabulary.corrects(text) or stops
            turn.prompt = replace(turn.prompt, is_correction=is_correction)
        self._is_interrupted = False
        return finished

    def _say(self, event: TranscriptEvent, text: str, origin: str = "") -> None:
        if text := self._clean(text):
            self._turn.steps.append(self._moment(AGENT, event, text=text, origin=origin))
            self._has_answered = True

    def _aside(self, event: TranscriptEvent) -> None:
        """Add the reason of a hook that stopped something, or the output of a `!cmd` that failed."""
        text, prompt = self._clean(event.text), self._turn.prompt
        if event.kind == events.STOPPED:
            self._turn.steps.append(self._moment(FAILED, event, text=text, about=HOOK))
        elif tools.says_failed(text) or vocabulary.has_error(text):
            about = f"!{prompt.text if prompt else ''}"
            self._turn.steps.append(self._moment(FAILED, event, text=text, about=about))

    def _call(self, event: TranscriptEvent) -> None:
        kind = tools.kind_of(event.tool)
        edits = tools.edits_of(event.input) if kind == tools.EDIT else ()
        values = tools.kept_of(kind, event.input, edits, self._clean_value)
        call = _PendingCall(event, kind, values, edits)
        self._turn.steps.append(call)
        self._open[event.call] = call
        if early := self._early.pop(event.call, None):
            self._result(early)
        if not event.in_subagent and (shown := tools.shown_to_user(event.tool, event.input)):
            self._say(event, shown, QUESTION if event.tool == tools.QUESTION else "")

    def _result(self, event: TranscriptEvent) -> None:
        call = self._open.pop(event.call, None)
        if call is None:
            self._early[event.call] = event
            if len(self._early) > MAX_EARLY:
                self._early.pop(next(iter(self._early)))
            return
        most = MAX_CHARS if self._outputs else RESULT_CHARS
        text = failure.without_escapes(blocks.ends(event.text, most, _CUT))
        call.done = replace(event, text="")
        if event.is_error or tools.is_result_needed(call.kind, call.input, text):
            call.text = self._clean(MARKS.sub("", text))
        elif self._outputs:
            call.output = self._clean(text)

    def _of_call(self, call: _PendingCall) -> Iterator[Moment]:
        """Yield the moments of a call: one, or one for each file that it changed."""
        event, done = call.event, call.done
        about = call.command or " ".join([event.tool, *call.input.get("files", ())])
        plain = self._moment(OPEN, event, tool=event.tool, about=about)
        plain = replace(plain, result=done.uuid if done and call.text else "")
        if done is None:
            yield plain
        elif done.is_error:
            yield self._failed(plain, call, done)
        elif call.kind == tools.EDIT:
            for part, edit in enumerate(call.edits):
                path = self._relative(edit.path, event)
                text = blocks.ends("\n".join(self._changed_lines(edit)), MAX_CHANGE, _CUT)
                kind = NEW_FILE if edit.is_whole else EDIT
                yield replace(plain, kind=kind, about=path, text=text, part=part)
            if self._outputs:
                yield replace(plain, kind=CALLED, text=call.output)
        else:
            yield self._ended(plain, call, done)

    def _failed(self, plain: Moment, call: _PendingCall, done: TranscriptEvent) -> Moment:
        if vocabulary.is_refusal(call.text):
            wanted = [line for edit in call.edits for line in self._changed_lines(edit)]
            text = blocks.ends("\n".join(wanted), MAX_CHANGE, _CUT)
            return replace(
                plain, kind=REFUSED, text=f"{text}\n{call.text}" if self._outputs else text
            )
        text = self._shortened(call.text)
        if vocabulary.is_aborted(text):
            return replace(plain, text=text)
        routine = vocabulary.is_mundane_error(text)
        return replace(plain, kind=FAILED, text=text, is_routine=routine, status=done.status)

    def _shortened(self, output: str) -> str:
        return output if self._outputs else blocks.ends(output, MAX_OUTPUT, _CUT)

    def _ended(self, plain: Moment, call: _PendingCall, done: TranscriptEvent) -> Moment:
        """Return a call whose result is no error, though its text may say that it failed."""
        values = call.input
        if call.kind == tools.SHELL:
            status = 0 if done.status is None and not values.get("is_background") else done.status
            plain = replace(plain, status=status)
            if call.text and tools.fails(call.command, call.text):
                return replace(plain, kind=FAILED, text=self._shortened(call.text))
            subjects = "\n".join(tools.subjects(call.command, call.text))
            tells = tools.is_check(call.command) or tools.is_change(call.command)
            named = tools.reads(call.command)
            plain = replace(plain, kind=RAN, text=subjects, is_routine=not tells)
        elif call.kind == tools.OTHER and call.text:
            return replace(plain, kind=FAILED, text=self._shortened(call.text))
        else:
            named = values.get("files", [])
            plain = replace(plain, kind=CALLED, text=values.get("text", ""))
            if call.kind == tools.TODO:
                created = _CREATED.search(call.text)
                todo = {**values, "created": created[1]} if created else values
                plain = replace(plain, text=json.dumps(todo, ensure_ascii=False))
        if self._outputs:
            plain = replace(plain, text=call.output or call.text)
        return replace(plain, files=tuple(self._relative(path, call.event) for path in named))

    def _relative(self, path: str, event: TranscriptEvent) -> str:
        return self._clean_value(tools.relative_path(path, self._folder, event.folder))

    def _moment(self, kind: str, event: TranscriptEvent, **more: Any) -> Moment:
        branch = self._clean_value(event.branch)
        same: dict[str, Any] = {"at": event.at, "uuid": event.uuid, "branch": branch, **more}
        return Moment(kind, in_subagent=event.in_subagent, **same)

    def _changed_lines(self, edit: tools.Edit) -> list[str]:
        sides = (events.without_own_text(text) for text in (edit.old, edit.new))
        old, new = (failure.without_escapes(text).splitlines() for text in sides)
        changed = [*(("-", line) for line in old), *(("+", line) for line in new)]
        if old and len(changed) <= MAX_LINES:
            changed = []
            for kind, *ends in difflib.SequenceMatcher(None, old, new).get_opcodes():
                if kind != "equal":
                    changed += [("-", line) for line in old[ends[0] : ends[1]]]
                    changed += [("+", line) for line in new[ends[2] : ends[3]]]
        return redact_change([f"{sign}{line}" for sign, line in changed])

    def _clean(self, text: str) -> str:
        text = failure.without_escapes(text[: MAX_CHARS + _SPARE])
        text = redact(events.without_own_text(text).strip())
        return text if len(text) <= MAX_CHARS else f"{text[:MAX_CHARS]}\n[...]"
