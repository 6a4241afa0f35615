"""A session as steps in their order: what was typed, said, run, written, refused, and what failed.

From the agent's own transcript where that is still there, since only it has what was written into
files; else from the session file of the journal. Without a session file nothing is read: the user may
not want this session looked at. Nothing of it is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vault_index.journal.record import OBSERVATION, PROMPT, Record, Session
from vault_index.store import injections
from vault_index.text import failure
from vault_index.transcripts import events, reading, tools, vocabulary
from vault_index.transcripts.events import Event

TYPED, SAID, RAN, WROTE = "typed", "said", "ran", "wrote"
LOOKED, FAILED, REFUSED = "looked", "failed", "refused"
SEEN = "seen"  # what a call showed to the agent
DOING = frozenset({RAN, WROTE})
MAX_BYTES = 64 * 1024 * 1024  # of a transcript; of a longer one the journal's file has to do
MAX_CHARS = 20_000  # of a step
MIN_LINE_CHARS = 8  # of a line that is known again
_OURS = "lessons "  # commands of this product look lessons up


@dataclass(frozen=True, slots=True)
class Step:
    """One step. `at` is ISO 8601, and `kind` of a typed text what the transcript calls it."""

    kind: str
    text: str
    at: str = ""
    origin: str = ""
    key: str = ""  # of a typed text or a failure's signature, as the record of injections has it
    came: frozenset[str] = frozenset()  # whole lines that an edit adds
    gone: frozenset[str] = frozenset()  # and those that it takes out


def steps_of(session: Session) -> list[Step]:
    """Return the steps of a session as far as they are known. Reads its transcript."""
    file = Path(session.transcript)
    steps: list[Step] = []
    with suppress(OSError):
        if file.is_file() and file.stat().st_size <= MAX_BYTES:
            steps = list(steps_in(reading.read_events(file, session.agent)))
    return steps or list(of_records(session.records))


def steps_in(happened: Iterable[Event]) -> Iterator[Step]:
    """Yield the steps that the events of a transcript show."""
    calls: dict[str, Event] = {}
    for event in happened:
        if event.kind in events.PROMPTS:
            text = events.without_own_text(event.text)
            yield Step(TYPED, text[:MAX_CHARS], event.at, event.kind, injections.key_of(event.text))
        elif event.kind == events.TEXT:
            yield Step(SAID, events.without_own_text(event.text)[:MAX_CHARS], event.at)
        elif event.kind == events.TOOL_CALL:
            calls[event.call] = event
        elif event.kind == events.TOOL_RESULT and event.call in calls:
            yield from _of_call(calls.pop(event.call), event)
    for call in calls.values():  # under way, or without a result
        yield from _of_call(call, None)


def _of_call(call: Event, result: Event | None) -> Iterator[Step]:
    kind, text = tools.kind_of(call.tool), _text_of_call(call)
    is_error, output = (result.is_error, result.text) if result else (False, "")
    if not text or text.startswith(_OURS):
        return
    if result and result.is_refused:
        yield Step(REFUSED, text, call.at)
    elif kind == tools.SHELL:
        yield Step(RAN, text, call.at)
        if is_error or (tools.is_check(text) and tools.says_failed(output)):
            yield _failed(text, output, call.at)
        else:
            yield from _seen(result)
    elif kind == tools.EDIT and not is_error:
        came, gone = changed_lines(tools.edits_of(call.input))
        yield Step(WROTE, text, call.at, came=came, gone=gone)
    elif kind in (tools.READ, tools.SEARCH):
        yield Step(LOOKED, text, call.at)
        yield from _seen(result)
    elif kind == tools.OTHER and "lesson" not in call.tool:
        yield Step(RAN, text, call.at)


def _seen(result: Event | None) -> Iterator[Step]:
    if result and result.text:
        yield Step(SEEN, events.without_own_text(result.text)[:MAX_CHARS], result.at)


def _failed(command: str, output: str, at: str) -> Step:
    key = injections.key_of(failure.read(command, output).signature)
    ends = output if len(output) <= 8000 else f"{output[:4000]}\n{output[-4000:]}"
    return Step(FAILED, ends, at, key=key)


def _text_of_call(call: Event) -> str:
    kind, values = tools.kind_of(call.tool), call.input
    if kind == tools.SHELL:
        return tools.text_of(values.get("command") or values.get("cmd"))[:MAX_CHARS]
    if kind != tools.EDIT:
        return events.without_own_text(" ".join(_texts(values)))[:MAX_CHARS]
    edits = tools.edits_of(values)
    paths = dict.fromkeys(edit.path for edit in edits)
    lines = [*paths, *(new_lines(edit.old, edit.new) for edit in edits)]
    return events.without_own_text("\n".join(lines))[:MAX_CHARS]


def changed_lines(edits: Iterable[tools.Edit]) -> tuple[frozenset[str], frozenset[str]]:
    """Return the lines that edits add and take out, but for those too short to be told apart."""
    came, gone = set[str](), set[str]()
    for edit in edits:
        old, new = (
            {line.strip() for line in text.splitlines() if len(line.strip()) >= MIN_LINE_CHARS}
            for text in (edit.old, edit.new)
        )
        came |= new - old
        gone |= old - new
    return frozenset(came), frozenset(gone)


def new_lines(old: str, new: str) -> str:
    """Return the lines that a change has added, without what the lines before had."""
    before = set(old.split())
    return "\n".join(
        " ".join(word for word in line.split() if word not in before) for line in new.splitlines()
    )


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


def of_records(records: Iterable[Record]) -> Iterator[Step]:
    """Yield the steps that the journal has of a session."""
    for record in records:
        if record.kind == PROMPT:
            yield Step(TYPED, record.text, record.at, record.origin, injections.key_of(record.text))
        elif record.kind == OBSERVATION:
            yield from _of_observation(record)


def _of_observation(record: Record) -> Iterator[Step]:
    if record.text:
        yield Step(SAID, record.text, record.at)
    for path in record.files_read:
        yield Step(LOOKED, path, record.at)
    for path in record.files_modified:
        yield Step(WROTE, path, record.at)
    for command in record.commands:
        if not command.text.startswith(_OURS):
            yield Step(RAN, command.text, record.at)
            if command.failed and not vocabulary.is_mundane_error(command.output):
                yield _failed(command.text, command.output, record.at)
    for error in record.errors:
        yield _failed("", error, record.at)
