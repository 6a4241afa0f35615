"""A transcript played once more: what was typed, what failed and passed, what was changed between.

The journal keeps what a search needs; learning needs the inputs of edits and the outputs of checks, too.
Readers, turns and signs are those of the journal, so both see the same session.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from vault_index.journal.observe import edges
from vault_index.journal.record import OBSERVATION, PROMPT, Command, Record, Session
from vault_index.journal.redact import Exclude
from vault_index.learn.material import ADDED, CHANGED, FileChange, Repair, Said
from vault_index.transcripts import events, reading, signs, tools, vocabulary
from vault_index.transcripts.tools import Edit
from vault_index.transcripts.turns import Call, Turn, Turns

MAX_LINES = 2_000  # of a text that is compared line by line; a longer one is all new
MAX_CHANGE = 6_000  # characters of a change that goes with a prompt or a repair
MAX_COMMAND = 300  # characters of a command that changed something
MOST_DID = 3  # calls before a prompt that say what it is about


@dataclass(slots=True)
class Replay:
    """A session as its transcript has it. `changed` are the edits that were done, in their order."""

    session: str = ""
    folder: str = ""
    uuids: list[str] = field(default_factory=list)  # of the prompts
    prompts: list[Said] = field(default_factory=list)
    narrative: list[str] = field(default_factory=list)
    repairs: list[Repair] = field(default_factory=list)
    subjects: list[str] = field(default_factory=list)
    changed: list[tuple[str, Edit, list[str]]] = field(default_factory=list)
    refused: int = 0


def of(file: Path, agent: str, redact: Callable[[str], str]) -> Replay:
    """Read a transcript. Raises OSError."""
    playing = _Playing(redact)
    for event in reading.read_events(file, agent):
        playing.take(event)
    return playing.end()


class _Playing:
    """Takes the events of a session, turn by turn."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        self._redact = redact
        self._turns = Turns(redact)
        self._calls: list[tuple[int, Call]] = []  # the number of its prompt, from 0
        self._done: dict[int, list[tuple[str, list[str]]]] = {}  # what each call changed
        self._texts: list[tuple[int, str]] = []  # how many calls came before, and the text
        self.replay = Replay()

    def take(self, event: events.Event) -> None:
        if not self.replay.session:
            self.replay.session = event.session
        if not self.replay.folder:
            self.replay.folder = event.folder
        self.replay.refused += event.is_refused
        if turn := self._turns.take(event):
            self._finish(turn)

    def end(self) -> Replay:
        if turn := self._turns.end():
            self._finish(turn)
        self.replay.repairs = list(self._repairs())
        return self.replay

    def _finish(self, turn: Turn) -> None:
        prompt, replay = turn.prompt, self.replay
        if prompt and events.is_internal(prompt.text):
            return
        number = len(replay.prompts) - 1
        if prompt and prompt.text:
            number += 1
            replay.prompts.append(self._said(turn, prompt))
            replay.uuids.append(prompt.uuid)
        done: list[tuple[str, list[str]]] = []
        for step in turn.steps:
            if isinstance(step, Call):
                self._calls.append((number, step))
                replay.subjects += signs.commits(step)
                done += self._changed(step)
            elif not step.is_question:
                replay.narrative.append(step.text)
                self._texts.append((len(self._calls), step.text))
        if prompt and prompt.text:
            change, named = _joined(done), tuple(dict.fromkeys(path for path, _ in done))
            replay.prompts[-1] = replace(replay.prompts[-1], change=change, files=named)

    def _said(self, turn: Turn, prompt: events.Event) -> Said:
        is_refusal, corrects = signs.kind_of_prompt(prompt.text, turn.context, prompt.kind)
        corrects = corrects or (not is_refusal and signs.is_correction(turn))
        before = [call for _, call in self._calls[-12:] if call.kind != tools.TODO]
        refused = [call for call in before if call.result_uuid == prompt.uuid]
        before = refused if is_refusal and refused else before[-MOST_DID:]
        return Said(
            prompt.text,
            turn.context,
            is_correction=corrects,
            is_refusal=is_refusal,
            origin=prompt.kind,
            did=tuple(self._shown(call) for call in before),
            first=len(self.replay.narrative),
        )

    def _shown(self, call: Call) -> str:
        """Return a call as a line: its tool, and the command or file."""
        named = [self._path(path, call) for path in tools.files_of(call.input)]
        about = str(call.input.get("command") or "") or ", ".join(named[:2])
        return vocabulary.one_line(f"{call.tool}: {about}" if about else call.tool, 200)

    def _path(self, path: str, call: Call) -> str:
        return tools.relative_path(path, self.replay.folder, call.folder)

    def _changed(self, call: Call) -> Iterator[tuple[str, list[str]]]:
        """Yield the paths that a call changed, each with its lines, and note them."""
        if not signs.is_done_edit(call) or not signs.is_change(call):
            return
        for edit in call.edits:
            path = self._redact(self._path(edit.path, call))
            lines = lines_of(edit, self._clean)
            self.replay.changed.append((path, edit, lines))
            self._done.setdefault(id(call), []).append((path, lines))
            yield path, lines

    def _clean(self, text: str) -> str:
        return self._redact(events.without_own_text(text))

    def _repairs(self) -> Iterator[Repair]:
        calls = [call for _, call in self._calls]
        places = {id(call): place for place, call in enumerate(calls)}
        for repair in signs.repairs(calls):
            begin, end = places[id(repair.failed)], places[id(repair.passed)]
            between = [one for call in calls[begin + 1 : end] for one in self._changes_of(call)]
            if repair.passed.input.get("command") != repair.failed.input.get("command"):
                between += _ran(repair.passed)
            first = self._first_failure(begin)
            number = self._calls[first][0]
            before = [call for other, call in self._calls[:first] if other == number]
            texts = [text for place, text in self._texts if begin < place <= end + 2]
            yield Repair(
                command=str(repair.failed.input.get("command") or ""),
                failed=edges(repair.failed.text),
                passed=edges(self._clean(repair.passed.printed)),
                files=tuple(dict.fromkeys(path for path, _ in between if path)),
                change=_joined(between),
                conclusion=vocabulary.cause(texts),
                prompt=number,
                is_own=any(signs.is_change(call) for call in before),
            )

    def _changes_of(self, call: Call) -> list[tuple[str, list[str]]]:
        """Return what a call changed: lines of files, or the command that did."""
        if call.kind == tools.SHELL and signs.is_change(call):
            return _ran(call)
        return self._done.get(id(call), [])

    def _first_failure(self, place: int) -> int:
        """Return where the check that failed at a place failed first, since it passed."""
        check = tools.same_as(str(self._calls[place][1].input.get("command") or ""))
        first = place
        for at in range(place - 1, -1, -1):
            call = self._calls[at][1]
            command = str(call.input.get("command") or "") if call.kind == tools.SHELL else ""
            if command and call.is_done and tools.same_as(command) == check:
                if not signs.failed(call):
                    break
                first = at
        return first


def _ran(call: Call) -> list[tuple[str, list[str]]]:
    """Return a command as the change of no file."""
    command = vocabulary.head(str(call.input.get("command") or ""), MAX_COMMAND)
    return [("", [f"$ {command}"])]


def _joined(changes: Sequence[tuple[str, list[str]]]) -> str:
    """Return changes as one text, each under the path of its file, within a bound."""
    parts: list[str] = []
    room = MAX_CHANGE
    last = ""
    for path, lines in changes:
        head = [path] if path not in ("", last) else []
        for line in [*head, *lines]:
            room -= len(line) + 1
            if room < 0:
                return "\n".join([*parts, "[...]"])
            parts.append(line)
        last = path
    return "\n".join(parts)


def lines_of(edit: Edit, clean: Callable[[str], str]) -> list[str]:
    """Return the lines of a change with - and +, redacted, without those that stay."""
    old, new = clean(edit.old).splitlines(), clean(edit.new).splitlines()
    if len(old) + len(new) > MAX_LINES:
        return [*(f"-{line}" for line in old), *(f"+{line}" for line in new)]
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=True)
    result = []
    for kind, begin, end, begin_new, end_new in matcher.get_opcodes():
        if kind != "equal":
            result += [f"-{line}" for line in old[begin:end]]
            result += [f"+{line}" for line in new[begin_new:end_new]]
    return result


def summed(edits: Iterable[tuple[str, Edit, list[str]]]) -> tuple[FileChange, ...]:
    """Return the changes of files that edits, each with its path and lines, come to."""
    kinds: dict[str, str] = {}
    added: dict[str, int] = {}
    removed: dict[str, int] = {}
    for path, edit, lines in edits:
        kinds.setdefault(path, ADDED if edit.is_whole else CHANGED)
        if edit.is_whole:  # the whole file again: what was counted of it before is in it
            added[path], removed[path] = 0, 0
        added[path] = added.get(path, 0) + sum(line.startswith("+") for line in lines)
        removed[path] = removed.get(path, 0) + sum(line.startswith("-") for line in lines)
    return tuple(FileChange(path, kind, added[path], removed[path]) for path, kind in kinds.items())


# The journal's records of a session as parts of a material, with or without its transcript.
#
# A person may have edited the session file or deleted records of it, and the settings may leave
# paths out:
# what the transcript still has of that is not taken from there.


@dataclass(slots=True)
class Parts:
    """Prompts, narrative and repairs that belong together."""

    prompts: list[Said] = field(default_factory=list)
    narrative: list[str] = field(default_factory=list)
    repairs: list[Repair] = field(default_factory=list)


def of_records(session: Session) -> Parts:
    """Return the parts by the records alone: the transcript is gone."""
    parts = Parts()
    for record in session.records:
        if record.kind == PROMPT:
            parts.prompts.append(_said(record, len(parts.narrative)))
        elif record.kind == OBSERVATION:
            parts.repairs += _repairs(record, len(parts.prompts) - 1)
            if record.text:
                parts.narrative.append(record.text)
    return parts


def of_replay(replay: Replay, session: Session, out: Exclude) -> Parts:
    """Return the parts by the transcript, as far as the records still have them."""
    prompts = {uuid: each for each in session.records if each.kind == PROMPT for uuid in each.uuids}
    told = "\n\n".join(each.text for each in session.records if each.kind == OBSERVATION)
    parts, numbers, firsts = Parts(), dict[int, int](), list[int]()
    for text in replay.narrative:
        firsts.append(len(parts.narrative))
        if text in told:
            parts.narrative.append(text)
    firsts.append(len(parts.narrative))
    for number, (uuid, said) in enumerate(zip(replay.uuids, replay.prompts, strict=True)):
        record = prompts.get(uuid)
        if record is not None:
            numbers[number] = len(parts.prompts)
            kept = _shown(said, session, out)
            parts.prompts.append(
                replace(
                    kept,
                    text=record.text,
                    answers=record.context,
                    record=record.id,
                    first=firsts[said.first],
                )
            )
    for repair in replay.repairs:
        if repair.prompt in numbers or repair.prompt < 0:
            shown = _without(repair, session, out)
            parts.repairs.append(replace(shown, prompt=numbers.get(repair.prompt, -1)))
    return parts


def _said(record: Record, first: int) -> Said:
    is_refusal, corrects = signs.kind_of_prompt(record.text, record.context, record.origin)
    return Said(
        record.text,
        record.context,
        is_correction=corrects,
        is_refusal=is_refusal,
        record=record.id,
        origin=record.origin,
        first=first,
    )


def _repairs(record: Record, number: int) -> Iterator[Repair]:
    """Yield the checks of an observation that failed and passed."""
    if not record.files_modified:
        return
    waiting: dict[str, Command] = {}
    for command in record.commands:
        check = tools.same_as(command.text)
        if command.failed and tools.is_check(command.text):
            waiting[check] = command
        elif command.status == 0 and check in waiting:
            yield Repair(
                command.text,
                waiting.pop(check).output,
                "",
                files=record.files_modified,
                conclusion=vocabulary.cause([record.text]),
                prompt=number,
            )


def _shown(said: Said, session: Session, out: Exclude) -> Said:
    """Return a prompt without what was changed of files that are left out."""
    kept = _kept(session, out, said.files, [Command(line) for line in said.did])
    is_whole = kept.files_modified == said.files
    return replace(
        said,
        files=kept.files_modified,
        change=said.change if is_whole else "",
        did=tuple(command.text for command in kept.commands),
    )


def _without(repair: Repair, session: Session, out: Exclude) -> Repair:
    """Return a repair without outputs and changes that may be of files that are left out."""
    outputs = [Command(repair.command, output=text) for text in (repair.failed, repair.passed)]
    kept = _kept(session, out, repair.files, outputs)
    is_whole = kept.files_modified == repair.files
    return replace(
        repair,
        command=kept.commands[0].text,
        failed=kept.commands[0].output,
        passed=kept.commands[1].output,
        files=kept.files_modified,
        change=repair.change if is_whole else "",
    )


def _kept(
    session: Session, out: Exclude, paths: Sequence[str], commands: Sequence[Command]
) -> Record:
    record = Record(
        *("", OBSERVATION, 0, "", "", ""), files_modified=tuple(paths), commands=tuple(commands)
    )
    if not paths and not commands:
        return record
    return out.apply(replace(session, records=(record,))).records[0]


def transcript_of(session: Session) -> Path | None:
    """Return the agent's file of a session, None if it is gone."""
    file = Path(session.transcript)
    return file if session.transcript and file.is_file() else None
