"""A turn as records: its prompt, and observations of what was done and found out. Rules, no model.

An observation is a unit of work. A turn has at least one if it led to work or to an answer that says
something; a long one is cut where the work turns: after a commit, after a check that failed and passes,
before a text that follows much work. Its narrative is all that the agent said there, word for word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypeVar

from vault_index.journal.record import OBSERVATION, PROMPT, Command, Record
from vault_index.transcripts import events, signs, tools, vocabulary
from vault_index.transcripts.events import Event
from vault_index.transcripts.turns import Call, Said, Turn

LEAST_CALLS = 3  # of a part of a turn: never an observation for a call
MOST_CALLS = 40  # a text after so many begins another part
MOST_CHARS = 6_000  # and one after so many characters of narrative
LONG_ANSWER = 800  # characters of a text that is an observation of its own when changes follow
LEAST_ANSWER = 60  # characters of an answer without work that say something
MOST_COMMANDS, COMMAND_CHARS = 20, 400  # kept of an observation, and of a command
MOST_FACTS, FACT_CHARS = 8, 300
MOST_ERRORS, FIRST_LINES, LAST_LINES, LINE_CHARS = 6, 4, 8, 240
MOST_FILES = 500
LEAST_TITLE = 12  # characters; a shorter first sentence takes the next one with it
LONG_PASTE = 8_000  # characters
_PLAN = "Implement the following plan:"
_IS_UTC = re.compile(r"\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3]):\d\d:\d\d\.\d{3}Z", re.ASCII).fullmatch
_T = TypeVar("_T")


def is_kept(turn: Turn) -> bool:
    """Whether a turn's prompt is a record: a bare slash command that led to nothing is not."""
    prompt = turn.prompt
    if prompt is None:
        return False
    if prompt.kind == events.SLASH_COMMAND and " " not in prompt.text:
        return bool(turn.calls) or sum(len(said.text) for said in turn.texts) >= LEAST_ANSWER
    return bool(prompt.text or prompt.images)


def prompt_record(turn: Turn, prompt: Event, number: int, short_id: str) -> Record:
    """Return the prompt of a turn, as typed, with what it answers."""
    text = prompt.text or f"[{'images' if prompt.images > 1 else 'image'} without text]"
    return Record(
        id=f"{short_id}-p{number}",
        kind=PROMPT,
        number=number,
        at=utc(prompt.at),
        title=title_of_prompt(text),
        text=text,
        uuids=(prompt.uuid,) if prompt.uuid else (),
        branch=prompt.branch,
        origin=prompt.kind,
        context=turn.context,
    )


def observations(turn: Turn, number: int, short_id: str, folder: str) -> list[Record]:
    """Return the observations of a turn of a session that was started in `folder`."""
    parts = [_Part(turn, steps, place) for place, steps in enumerate(_parts(turn.steps))]
    parts = [part for part in parts if part.says_something]
    records = []
    for place, part in enumerate(parts):
        suffix = f".{place + 1}" if place else ""
        records.append(_record(part, f"{short_id}-o{number}{suffix}", number, folder))
    return records


def utc(at: str) -> str:
    """Return a time as ISO 8601 in UTC, "" if it is none."""
    try:
        moment = datetime.fromisoformat(at)
    except ValueError:
        return ""
    if _IS_UTC(at):
        return at
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    try:
        moment = moment.astimezone(UTC)
    except OverflowError:
        return ""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def title_of_prompt(text: str) -> str:
    """Return the first sentence that says something; of a long paste the last line, its request."""
    lines = [line for line, _ in vocabulary.plain_lines(text.removeprefix(_PLAN))] or [text]
    if len(text) > LONG_PASTE and len(lines[-1]) < 300:
        lines = lines[::-1]
    sentences = [one for line in lines[:20] for one in vocabulary.split_sentences(line)]
    sentences = [one for one in sentences if any(char.isalnum() for char in one)]
    for place, sentence in enumerate(sentences):
        if len(sentence) >= LEAST_TITLE or place + 1 == len(sentences):
            return vocabulary.one_line(sentence if place == 0 else _joined(sentences[: place + 1]))
    return vocabulary.one_line(text)


def _joined(sentences: Sequence[str]) -> str:
    """Return what is too short for a title with what follows it, unless it only announces that."""
    return " ".join(one for one in sentences if not one.endswith(":") or one is sentences[-1])


@dataclass(slots=True)
class _Part:
    """Steps of a turn that belong together."""

    turn: Turn
    steps: Sequence[Said | Call]
    place: int  # among the parts of its turn, from 0
    texts: list[str] = field(init=False)
    statements: list[str] = field(init=False)  # the texts that are no questions with choices
    calls: list[Call] = field(init=False)
    edits: list[Call] = field(init=False)  # that were done
    commits: list[str] = field(init=False)
    repairs: list[signs.Repair] = field(init=False)

    def __post_init__(self) -> None:
        self.texts = [step.text for step in self.steps if isinstance(step, Said)]
        self.statements = [
            step.text for step in self.steps if isinstance(step, Said) and not step.is_question
        ]
        self.calls = [step for step in self.steps if isinstance(step, Call)]
        self.edits = [call for call in self.calls if signs.is_change(call)]
        self.commits = [subject for call in self.calls for subject in signs.commits(call)]
        self.repairs = signs.repairs(self.calls)

    @property
    def prompt(self) -> Event | None:
        """Return the prompt, for the first part of its turn."""
        return self.turn.prompt if self.place == 0 else None

    @property
    def narrative(self) -> str:
        return "\n\n".join(self.texts)

    @property
    def says_something(self) -> bool:
        """Whether work was done, or the answer is more than a courtesy."""
        return any(call.is_done for call in self.calls) or len(self.narrative) >= LEAST_ANSWER

    @property
    def request(self) -> str:
        """Return the text of the prompt, "" in the later parts of a turn."""
        return self.prompt.text.removeprefix(_PLAN) if self.prompt else ""


def _parts(steps: Sequence[Said | Call]) -> list[list[Said | Call]]:
    """Return the steps of a turn, cut where the work turns."""
    parts: list[list[Said | Call]] = [[]]
    calls = chars = 0
    edits_ahead = _counts_ahead(steps)
    for place, step in enumerate(steps):
        if isinstance(step, Said) and calls >= LEAST_CALLS and edits_ahead[place]:
            part_is_full = calls >= MOST_CALLS or chars >= MOST_CHARS
            is_turn = isinstance(parts[-1][-1], Call) and _is_end(parts[-1])
            if part_is_full or is_turn:
                parts.append([])
                calls = chars = 0
        parts[-1].append(step)
        if isinstance(step, Call):
            calls += 1
        else:
            chars += len(step.text)
            if len(step.text) >= LONG_ANSWER and calls >= LEAST_CALLS and edits_ahead[place]:
                parts.append([])
                calls = chars = 0
    if len(parts) > 1 and sum(isinstance(step, Call) for step in parts[-1]) < LEAST_CALLS:
        last = parts.pop()
        parts[-1] += last
    return parts


def _is_end(part: Sequence[Said | Call]) -> bool:
    """Whether the last call ends a piece of work: a commit, or the check that passes at last."""
    calls = [step for step in part if isinstance(step, Call)]
    if signs.commits(calls[-1]):
        return True
    return any(repair.passed is calls[-1] for repair in signs.repairs(calls))


def _counts_ahead(steps: Sequence[Said | Call]) -> list[bool]:
    """Return for each step whether work of weight follows: changes, or as many calls as make a part."""
    result, edits, calls = [], 0, 0
    for step in reversed(steps):
        result.append(edits > 0 or calls > MOST_CALLS)
        if isinstance(step, Call):
            calls += 1
            edits += signs.is_change(step)
    return result[::-1]


def _record(part: _Part, record_id: str, number: int, folder: str) -> Record:
    corrected = signs.is_correction(part.turn, part.place)
    type_ = signs.type_of(part.request, part.edits, part.commits, bool(part.repairs), corrected)
    named = [(call, path) for call in part.calls for path in signs.files(call)]
    modified = _unique(
        tools.shown_path(path, folder, call.folder)
        for call, path in named
        if signs.is_done_edit(call)
    )
    read = _unique(
        tools.shown_path(path, folder, call.folder)
        for call, path in named
        if call.kind in (tools.READ, tools.SHELL) and not call.is_error
    )
    facts = signs.facts(
        part.turn, part.place, part.statements, part.commits, part.repairs, modified
    )
    undone = [tools.shown_path(path, folder) for path in signs.undone(part.calls)]
    facts += [f"A change of {path} was taken back" for path in undone]
    return Record(
        id=record_id,
        kind=OBSERVATION,
        number=number,
        at=utc(part.steps[-1].at) or utc(part.turn.ended),
        title=_title(part, type_),
        text=part.narrative,
        uuids=_uuids(part),
        branch=part.turn.branch,
        type=type_,
        facts=tuple(vocabulary.one_line(fact, FACT_CHARS) for fact in facts[:MOST_FACTS]),
        concepts=signs.concepts(
            *(part.request, part.narrative, type_),
            has_changed=bool(part.edits),
            has_undone=bool(undone),
        ),
        files_read=tuple(path for path in read if path not in modified)[:MOST_FILES],
        files_modified=tuple(modified[:MOST_FILES]),
        commands=_commands(part.calls),
        errors=_errors(part.calls),
    )


def _title(part: _Part, type_: str) -> str:
    """Return the subject of a commit, else the sentence that concludes, else the prompt's."""
    if part.commits:
        return vocabulary.one_line(part.commits[0])
    if conclusion := signs.conclusion(part.statements):
        return vocabulary.one_line(conclusion)
    if part.turn.prompt and part.turn.prompt.text:
        return title_of_prompt(part.turn.prompt.text)
    for call in part.calls:
        if about := call.input.get("command"):
            return vocabulary.one_line(str(about))
    return type_


def _uuids(part: _Part) -> tuple[str, ...]:
    """Return the records of the transcript: the prompt, texts, calls, and results that are errors."""
    uuids = [part.turn.prompt.uuid] if part.turn.prompt else []
    for step in part.steps:
        uuids.append(step.uuid)
        if isinstance(step, Call) and step.text:
            uuids.append(step.result_uuid)
    return tuple(_unique(uuid for uuid in uuids if uuid))


def _commands(calls: Iterable[Call]) -> tuple[Command, ...]:
    """Return the commands: those that failed, check or commit first, if there are too many."""
    commands: list[tuple[bool, Command]] = []
    for call in calls:
        if call.kind == tools.SHELL and call.input.get("command") and call.is_done:
            failed = signs.failed(call)
            text = vocabulary.head(str(call.input["command"]), COMMAND_CHARS)
            output = edges(call.text) if failed else ""
            matters = failed or tools.is_check(text) or tools.is_commit(text)
            commands.append((matters, Command(text, call.status, failed, output)))
    room = MOST_COMMANDS - sum(matters for matters, _ in commands)
    kept = []
    for matters, command in commands:
        if matters or room > 0:
            kept.append(command)
            room -= not matters
    return tuple(_unique(kept)[-MOST_COMMANDS:])


def _errors(calls: Iterable[Call]) -> tuple[str, ...]:
    """Return first and last lines of errors of tools other than the shell, whose commands have them."""
    texts = (edges(call.text) for call in calls if signs.is_telling_error(call))
    return tuple(_unique(text for text in texts if text)[:MOST_ERRORS])


def edges(text: str) -> str:
    """Return the first and last lines of a text."""
    lines = [vocabulary.one_line(line, LINE_CHARS) for line in text.splitlines() if line.strip()]
    if len(lines) > FIRST_LINES + LAST_LINES + 1:
        lines = [*lines[:FIRST_LINES], "[...]", *lines[-LAST_LINES:]]
    return "\n".join(lines)


def _unique(values: Iterable[_T]) -> list[_T]:
    return list(dict.fromkeys(values))
