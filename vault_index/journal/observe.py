"""A session as records by rule, without a model: prompts, observations of each turn, a summary.

An observation is a unit of work. A turn has at least one if it led to work or to an answer that says
something; a long one is cut where the work turns: after a commit, after a check that failed and passes,
before a text that follows much work. Its narrative is all that the agent said there, word for word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain
from typing import TypeVar

from vault_index.journal.record import CONCEPTS, OBSERVATION, PROMPT, SUMMARY, Command, Record
from vault_index.text import blocks
from vault_index.transcripts import events, tools, vocabulary
from vault_index.transcripts.events import Event
from vault_index.transcripts.turns import Call, Said, Turn

MIN_CALLS = 3  # of a part of a turn: never an observation for a call
MAX_CALLS = 40  # a text after so many begins another part
MAX_CHARS = 6_000  # and one after so many characters of narrative
LONG_ANSWER = 800  # characters of a text that is an observation of its own when changes follow
MIN_ANSWER = 60  # characters of an answer without work that say something
MAX_COMMANDS, COMMAND_CHARS = 20, 400  # kept of an observation, and of a command
MAX_FACTS, FACT_CHARS = 8, 300
MAX_ERRORS, FIRST_LINES, LAST_LINES, LINE_CHARS = 6, 4, 8, 240
MIN_EXPLANATION = 120  # characters of an answer that explains how something works
MIN_CONCLUSION = 80  # and of a text whose sentences may be facts
PROSE = (".md", ".rst", ".txt", ".adoc")
MAX_FILES = 500
MAX_LINES, FIELD_CHARS = 8, 300  # of a field of a summary, and of a line
REQUESTS = 3  # prompts that say what a session is about
SUMMARY_FILES = 12
MIN_TITLE = 12  # characters; a shorter first sentence takes the next one with it
LONG_PASTE = 8_000  # characters
_PLAN = "Implement the following plan:"
_IS_UTC = re.compile(r"\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3]):\d\d:\d\d\.\d{3}Z", re.ASCII).fullmatch
_T = TypeVar("_T")


def is_recorded(turn: Turn) -> bool:
    """Whether a turn's prompt is a record: a bare slash command that led to nothing is not."""
    prompt = turn.prompt
    if prompt is None:
        return False
    if prompt.kind == events.SLASH_COMMAND and " " not in prompt.text:
        return bool(turn.calls) or sum(len(said.text) for said in turn.texts) >= MIN_ANSWER
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
    telling = [part for part in parts if part.says_something]
    return [
        _record(part, f"{short_id}-o{number}{f'.{place}' if place > 1 else ''}", number, folder)
        for place, part in enumerate(telling, start=1)
    ]


def utc(at: str) -> str:
    """Return a time as ISO 8601 in UTC, "" for another text."""
    try:
        moment = datetime.fromisoformat(at)
        if _IS_UTC(at):
            return at
        moment = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return ""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def title_of_prompt(text: str) -> str:
    """Return the first sentence that says something; of a long paste the last line, its request."""
    lines = [line for line, _ in vocabulary.plain_lines(text.removeprefix(_PLAN))] or [text]
    if len(text) > LONG_PASTE and len(lines[-1]) < 300:
        lines = lines[::-1]
    split = (vocabulary.split_sentences(line) for line in lines[:20])
    sentences = [text for text in chain.from_iterable(split) if any(map(str.isalnum, text))]
    for place, sentence in enumerate(sentences):
        if len(sentence) >= MIN_TITLE or place + 1 == len(sentences):
            return blocks.one_line(sentence if place == 0 else _joined(sentences[: place + 1]))
    return blocks.one_line(text)


def _joined(sentences: Sequence[str]) -> str:
    """Return what is too short for a title with what follows it, unless it only announces that."""
    *begin, last = sentences
    return " ".join([*(text for text in begin if not text.endswith(":")), last])


class _Part:
    """Steps of a turn that belong together. `place`: among the parts of its turn, from 0."""

    def __init__(self, turn: Turn, steps: Sequence[Said | Call], place: int) -> None:
        self.turn, self.steps, self.place = turn, steps, place
        said = [step for step in steps if isinstance(step, Said)]
        self.narrative = "\n\n".join(step.text for step in said)
        self.statements = [step.text for step in said if not step.is_question]
        self.calls = [step for step in steps if isinstance(step, Call)]
        self.edits = [call for call in self.calls if call.is_change]
        self.commits = [subject for call in self.calls for subject in call.commits]
        self.repairs = _repairs(self.calls)
        # the later parts of a turn have no prompt
        self.prompt = turn.prompt if not place and turn.prompt else Event("", "", "")
        self.request = self.prompt.text.removeprefix(_PLAN)
        self.is_correction = not place and turn.is_correction

    @property
    def is_choice(self) -> bool:
        """Whether the prompt chooses among what the agent offered."""
        if self.prompt.kind not in events.TYPED or not self.turn.context:
            return False
        return self.prompt.kind == events.ANSWER or vocabulary.chooses(self.prompt.text)

    @property
    def says_something(self) -> bool:
        """Whether work was done, or the answer is more than a courtesy."""
        return any(call.is_done for call in self.calls) or len(self.narrative) >= MIN_ANSWER


def _parts(steps: Sequence[Said | Call]) -> list[list[Said | Call]]:
    """Return the steps of a turn, cut where the work turns."""
    parts: list[list[Said | Call]] = [[]]
    calls = chars = 0
    for step, is_ahead in zip(steps, _counts_ahead(steps), strict=True):
        is_text = isinstance(step, Said)
        is_full = calls >= MAX_CALLS or chars >= MAX_CHARS
        if is_text and is_ahead and calls >= MIN_CALLS and (is_full or _is_end(parts[-1])):
            parts.append([])
            calls = chars = 0
        parts[-1].append(step)
        calls += not is_text
        chars += len(step.text) if is_text else 0
        if is_text and is_ahead and calls >= MIN_CALLS and len(step.text) >= LONG_ANSWER:
            parts.append([])
            calls = chars = 0
    if len(parts) > 1 and sum(isinstance(step, Call) for step in parts[-1]) < MIN_CALLS:
        last = parts.pop()
        parts[-1] += last
    return parts


def _is_end(part: Sequence[Said | Call]) -> bool:
    """Whether the last step ends a piece of work: a commit, or the check that passes at last."""
    if not isinstance(part[-1], Call):
        return False
    calls = [step for step in part if isinstance(step, Call)]
    return bool(calls[-1].commits) or any(last is calls[-1] for _, last in _repairs(calls))


def _counts_ahead(steps: Sequence[Said | Call]) -> list[bool]:
    """Return for each step whether work of weight follows: changes, or as many calls as make a part."""
    result, edits, calls = [], 0, 0
    for step in reversed(steps):
        result.append(edits > 0 or calls > MAX_CALLS)
        if isinstance(step, Call):
            calls += 1
            edits += step.is_change
    return result[::-1]


def _record(part: _Part, record_id: str, number: int, folder: str) -> Record:
    modified, read = list[str](), list[str]()
    for call in part.calls:
        paths = [tools.relative_path(path, folder, call.folder) for path in call.files]
        if call.is_done_edit:
            modified += paths
        elif call.kind != tools.EDIT and not call.is_error:
            read += paths
    modified = _unique(modified)
    undone = [tools.relative_path(path, folder) for path in _undone(part.calls)]
    facts = _unique(_facts(part, modified))
    facts += [f"A change of {path} was taken back" for path in undone]
    type_ = _type(part)
    named = vocabulary.concepts(f"{part.request[:1000]}\n{part.narrative}")
    also = {
        "how-it-works": type_ == "discovery" and len(part.narrative) >= MIN_EXPLANATION,
        "what-changed": bool(part.edits),
        "problem-solution": type_ == "bugfix",
        "gotcha": bool(undone),
    }
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
        facts=tuple(blocks.one_line(fact, FACT_CHARS) for fact in facts[:MAX_FACTS]),
        concepts=tuple(name for name in CONCEPTS if name in named or also.get(name)),
        files_read=tuple(path for path in _unique(read) if path not in modified)[:MAX_FILES],
        files_modified=tuple(modified[:MAX_FILES]),
        commands=_commands(part.calls),
        errors=_errors(part.calls),
    )


def _type(part: _Part) -> str:
    if part.repairs:
        return "bugfix"
    if part.is_correction:
        return "decision"
    if part.commits:
        return vocabulary.type_of_subject(part.commits[0])
    if part.edits:
        paths = [path for call in part.edits for path in call.files]
        only_prose = paths and all(path.endswith(PROSE) for path in paths)
        return "change" if only_prose else vocabulary.type_of_request(part.request)
    return "decision" if vocabulary.chooses(part.request) else "discovery"


def _title(part: _Part, type_: str) -> str:
    """Return the subject of a commit, else the sentence that concludes, else the prompt's.

    It concludes if it is the first good one of the last long text.
    """
    if part.commits:
        return blocks.one_line(part.commits[0])
    for text in sorted(part.statements[:-5:-1], key=lambda text: len(text) < 120):
        for sentence in vocabulary.sentences(text):
            if _is_statement(sentence, 24):
                return blocks.one_line(sentence)
    if part.turn.prompt and part.turn.prompt.text:
        return title_of_prompt(part.turn.prompt.text)
    about = next((call.command for call in part.calls if call.command), type_)
    return blocks.one_line(about)


def _facts(part: _Part, modified: Sequence[str]) -> Iterator[str]:
    """Yield the single statements of a part of a turn that are worth finding on their own."""
    yield from part.commits
    if part.is_correction or part.is_choice:
        yield f"The user: {blocks.one_line(part.prompt.text, 280)}"
    by = f" after changes to {', '.join(modified[:3])}" if modified else ""
    for failed, _ in part.repairs:
        said = blocks.one_line(vocabulary.error_line(failed.text), 120)
        yield f"`{blocks.one_line(failed.command, 80)}` failed ({said}) and passed{by}"
    for call in () if part.place else part.turn.calls:
        if title := tools.pull_request(call.command):
            yield f"Pull request: {title}"
    for sentence in _conclusions(part.statements):
        if not any(subject in sentence for subject in part.commits):
            yield sentence


def _conclusions(texts: Sequence[str]) -> list[str]:
    """Return up to four sentences that conclude, of the texts that are longest, in their order."""
    longest = sorted(texts, key=len, reverse=True)[:3]
    chosen = []
    for text in texts:
        if text in longest and len(text) >= MIN_CONCLUSION:
            good = [line for line in vocabulary.sentences(text) if _is_statement(line, 40)]
            chosen += [line for line in good if vocabulary.concludes(line)][:2] or good[:1]
    return chosen[:4]


def _is_statement(sentence: str, least: int) -> bool:
    """Whether a sentence states something: neither what comes next nor a courtesy nor a question."""
    if len(sentence) < least or sentence[0] in "{[" or sentence.endswith(("?", ":")):
        return False
    if vocabulary.is_chatter(sentence):
        return False
    return sum(map(str.isalpha, sentence)) > len(sentence) // 2


def _repairs(calls: Sequence[Call]) -> list[tuple[Call, Call]]:
    """Return the last failure of each check that failed and passed after a change, and the pass."""
    waiting: dict[str, tuple[Call, int]] = {}
    edits, result = 0, []
    for call in calls:
        edits += call.is_change
        if not call.command or not call.is_done or (call.status is None and not call.is_error):
            continue
        check = tools.same_as(call.command)
        if call.has_failed:
            if tools.is_check(call.command) or check not in waiting:
                waiting[check] = call, edits
        elif check in waiting:
            failure, edits_before = waiting.pop(check)
            if edits > edits_before:
                result.append((failure, call))
    return result


def _undone(calls: Sequence[Call]) -> list[str]:
    """Return the files in which the agent took a change of its own back."""
    changes: set[tuple[str, str, str]] = set()
    taken_back = []
    for edit in (edit for call in calls if call.is_done_edit for edit in call.edits):
        if (edit.path, edit.new, edit.old) in changes:
            taken_back.append(edit.path)
        if edit.old:
            changes.add((edit.path, edit.old, edit.new))
    return _unique(taken_back)


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
        if call.command and call.is_done:
            failed = call.has_failed
            text = vocabulary.head(call.command, COMMAND_CHARS)
            output = edges(call.text) if failed else ""
            matters = failed or tools.is_check(text) or tools.is_commit(text)
            commands.append((matters, Command(text, call.status, failed, output)))
    room = MAX_COMMANDS - sum(matters for matters, _ in commands)
    chosen = []
    for matters, command in commands:
        if matters or room > 0:
            chosen.append(command)
            room -= not matters
    return tuple(_unique(chosen)[-MAX_COMMANDS:])


def _errors(calls: Iterable[Call]) -> tuple[str, ...]:
    """Return first and last lines of errors of tools other than the shell, whose commands have them."""
    telling = (call for call in calls if call.is_error and call.kind != tools.SHELL)
    texts = (edges(each.text) for each in telling if not vocabulary.is_mundane_error(each.text))
    return tuple(_unique(text for text in texts if text)[:MAX_ERRORS])


def edges(text: str) -> str:
    """Return the first and last lines of a text."""
    lines = [blocks.one_line(line, LINE_CHARS) for line in text.splitlines() if line.strip()]
    if len(lines) > FIRST_LINES + LAST_LINES + 1:
        lines = [*lines[:FIRST_LINES], "[...]", *lines[-LAST_LINES:]]
    return "\n".join(lines)


def _unique(values: Iterable[_T]) -> list[_T]:
    return list(dict.fromkeys(values))


# The summary: six fields, each of a few lines.


def summary(
    records: Sequence[Record],
    todos: Mapping[str, tuple[str, str]],
    searches: Sequence[str],
    short_id: str,
    ended: str,
) -> Record | None:
    """Return the summary of a session, None if it has no prompt and no work.

    `todos` are the agent's: id -> text and status. `searches` are the patterns it looked for.
    """
    observations = [record for record in records if record.kind == OBSERVATION]
    prompts = [record for record in records if record.kind == PROMPT]
    if not observations and not prompts:
        return None
    requests = _requests(prompts)
    fields = {
        "request": [record.text for record in requests] or [observations[0].title],
        "investigated": _investigated(observations, searches),
        "learned": _learned(observations),
        "completed": _completed(observations),
        "next_steps": _next_steps(observations, todos),
        "notes": _notes(observations),
    }
    first = requests[0] if requests else observations[0]
    return Record(
        id=f"{short_id}-s",
        kind=SUMMARY,
        number=max(record.number for record in records),
        at=ended,
        title=first.title,
        text="",
        uuids=tuple(uuid for record in requests for uuid in record.uuids),
        branch=records[-1].branch,
        fields={name: text for name, some in fields.items() if (text := "\n".join(_lines(some)))},
    )


def _lines(texts: Iterable[str]) -> list[str]:
    return _unique(blocks.one_line(text, FIELD_CHARS) for text in texts if text.strip())[:MAX_LINES]


def _requests(prompts: Sequence[Record]) -> list[Record]:
    """Return the first prompts that say what is wanted; those of programs if there are no others."""
    typed = [record for record in prompts if record.origin in events.TYPED]
    asking = (events.PROMPT, events.QUEUED, events.PLAN)
    said = [record for record in prompts if record.origin in asking]
    telling = [record for record in said if len(record.text.split()) >= 4]
    return (telling or said or [r for r in prompts if r not in typed] or typed)[:REQUESTS]


def _investigated(observations: Sequence[Record], searches: Sequence[str]) -> list[str]:
    names = _unique(path for record in observations for path in record.files_read)
    lines = []
    if names:
        more = f" and {len(names) - SUMMARY_FILES} more" if len(names) > SUMMARY_FILES else ""
        lines.append(f"Files: {', '.join(names[:SUMMARY_FILES])}{more}")
    if searches:
        lines.append(f"Searches: {', '.join(f'`{text}`' for text in searches)}")
    asked = [record.title for record in observations if record.type == "discovery"]
    return lines + asked[: MAX_LINES - len(lines)]


def _learned(observations: Sequence[Record]) -> list[str]:
    """Return a fact of each observation that found something out: what it concludes."""
    lines = []
    for record in observations:
        if record.type in ("discovery", "bugfix", "decision"):
            facts = [fact for fact in record.facts if not _is_told_elsewhere(fact, record)]
            lines += facts[: 2 if record.type == "bugfix" else 1]
    return lines[-MAX_LINES:]


def _is_told_elsewhere(fact: str, record: Record) -> bool:
    """Whether another field has a fact: the user's words, the subject of a commit."""
    return fact.startswith("The user: ") or (fact == record.title and bool(record.files_modified))


def _completed(observations: Sequence[Record]) -> list[str]:
    """Return what was done: commits, else changes by their titles, and the checks that pass."""
    lines = []
    for record in observations:
        if record.files_modified or any(tools.is_commit(c.text) for c in record.commands):
            files = ", ".join(record.files_modified[:5])
            lines.append(f"{record.title} ({files})" if files else record.title)
    passing = [
        check
        for check, command in _last_checks(observations).items()
        if command.status == 0 and not command.failed and not tools.is_commit(command.text)
    ]
    lines = _unique(lines)
    if passing:
        lines.append(f"Passing: {', '.join(f'`{check}`' for check in passing[-5:])}")
    return lines[-MAX_LINES:]


def _next_steps(observations: Sequence[Record], todos: Mapping[str, tuple[str, str]]) -> list[str]:
    """Return the open todos, and what the last message says remains."""
    lines = [text for text, status in todos.values() if status not in ("completed", "deleted")]
    said = [record.text for record in observations[-2:] if record.text]
    if said:
        for line, kind in vocabulary.plain_lines(vocabulary.tail(said[-1], 3000)):
            if kind != vocabulary.HEADING and not line.endswith(":"):
                lines += filter(vocabulary.remains, vocabulary.split_sentences(line))
    return lines


def _notes(observations: Sequence[Record]) -> list[str]:
    """Return what the user decided, and the checks whose last run failed."""
    decisions = [
        next((fact for fact in record.facts if fact.startswith("The user: ")), record.title)
        for record in observations
        if record.type == "decision"
    ]
    checks = _last_checks(observations)
    failing = [(check, command) for check, command in checks.items() if command.failed]
    errors = [
        f"Not resolved: `{check}`: {vocabulary.error_line(command.output)}"
        for check, command in failing[-3:]
    ]
    return decisions[-(MAX_LINES - len(errors)) :] + errors


def _last_checks(observations: Sequence[Record]) -> dict[str, Command]:
    """Return the last run of each check, in the order of these runs."""
    last: dict[str, Command] = {}
    for command in (command for record in observations for command in record.commands):
        if tools.is_check(command.text):
            check = tools.same_as(command.text)
            last.pop(check, None)
            last[check] = command
    return last
