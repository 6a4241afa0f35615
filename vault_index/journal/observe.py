"""The records of a session, a view over its moments: prompts, observations of each turn, a summary.

By rule, without a model. An observation is a unit of work. A turn has at least one if it led to work or
to an answer that says something; a long one is cut after a commit, after a check that failed and passes,
before a text that follows much work. Its narrative is what the agent said, word for word.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain, groupby
from operator import attrgetter
from typing import TypeVar

from vault_index.journal.record import (
    CONCEPTS,
    OBSERVATION,
    PROMPT,
    SUMMARY,
    Command,
    Record,
    Session,
)
from vault_index.text import blocks, failure
from vault_index.transcripts import events, moments, tools, vocabulary
from vault_index.transcripts.moments import (
    AGENT,
    CALLED,
    MIN_ANSWER,
    OPEN,
    PERSON,
    QUESTION,
    Moment,
)

MIN_CALLS = 3  # of a part of a turn: never an observation for a call
MAX_CALLS = 40  # a text after so many begins another part
MAX_CHARS = 6_000  # and one after so many characters of narrative
CONTEXT_CHARS = 800  # of what the agent had said before a prompt
MAX_SEARCHES = 12  # the last ones
MAX_COMMANDS, COMMAND_CHARS = 50, 400  # kept of an observation, and of a command
MAX_FACTS, FACT_CHARS = 8, 300
MAX_ERRORS, ERROR_CHARS = 6, 1_200
MIN_EXPLANATION = 120  # characters of an answer that explains how something works
MIN_CONCLUSION = 80  # and of a text whose sentences may be facts
PROSE = (".md", ".rst", ".txt", ".adoc")
MAX_FILES = 500
MAX_LINES, FIELD_CHARS = 8, 300  # of a field of a summary, and of a line
REQUESTS = 3  # prompts that say what a session is about
SUMMARY_FILES = 12
MIN_TITLE = 12  # bytes; a shorter sentence, such as "great!", is no title
LONG_PASTE = 8_000  # characters
_PLAN = "Implement the following plan:"
_T = TypeVar("_T")


def seen(session: Session, all_moments: Sequence[Moment]) -> Session:
    """Return a session with the records and counts of its moments."""
    main = [each for each in all_moments if not each.in_subagent]
    return replace(
        session,
        prompts=sum(each.kind == PERSON and each.origin in events.TYPED for each in main),
        tool_calls=sum(each.is_call and not each.part for each in main),
        errors=sum(each.is_error for each in main),
        records=_records(session, all_moments),
    )


def _records(session: Session, all_moments: Sequence[Moment]) -> tuple[Record, ...]:
    records, context = list[Record](), ""
    todos, searches = dict[str, tuple[str, str]](), list[str]()
    for number, turn in groupby(all_moments, attrgetter("number")):
        steps = [*turn]
        if steps[0].kind == PERSON:
            records.append(_prompt(steps[0], context, session))
        records += _observations(steps, context, number, session)
        for each in steps:
            if each.kind == AGENT:
                context = vocabulary.tail(f"{context}\n\n{each.text}", CONTEXT_CHARS)
            elif each.kind == CALLED:
                _remember(each, todos, searches)
    last = summary(records, todos, searches, session.short, session.ended)
    return (*records, last) if last else tuple(records)


def _remember(call: Moment, todos: dict[str, tuple[str, str]], searches: list[str]) -> None:
    """Note todos and searches of the whole session, for its summary."""
    kind = tools.kind_of(call.tool)
    if kind == tools.SEARCH and not call.in_subagent and (text := call.text[:80]):
        searches[:] = [*(other for other in searches if other != text), text][-MAX_SEARCHES:]
    if kind != tools.TODO:
        return
    values = json.loads(call.text)
    id, status = str(values.get("taskId") or ""), str(values.get("status") or "")
    if several := values.get("todos"):
        todos.clear()
        todos.update((str(number), (text, now)) for number, (text, now) in enumerate(several))
    elif subject := values.get("subject"):
        key = f"#{values.get('created') or id or len(todos) + 1}"
        todos[key] = (str(subject), status or "pending")
    if status and f"#{id}" in todos:
        todos[f"#{id}"] = (todos[f"#{id}"][0], status)


def _prompt(prompt: Moment, context: str, session: Session) -> Record:
    return Record(
        id=f"{session.short}-p{prompt.number}",
        kind=PROMPT,
        number=prompt.number,
        at=utc(prompt.at),
        title=title_of_prompt(prompt.text),
        text=prompt.text,
        uuids=(prompt.uuid,) if prompt.uuid else (),
        branch=prompt.branch,
        origin=prompt.origin,
        context=context,
    )


def _observations(turn: list[Moment], context: str, number: int, session: Session) -> list[Record]:
    prompt = turn[0] if turn[0].kind == PERSON else None
    steps = [each for each in turn if each.kind == AGENT or each.is_call]
    parts = [
        _TurnPart(prompt, context, steps, position) for position, steps in enumerate(_parts(steps))
    ]
    telling = [part for part in parts if part.says_something]
    return [
        _record(part, f"{session.short}-o{number}{f'.{count}' if count > 1 else ''}", turn)
        for count, part in enumerate(telling, start=1)
    ]


def utc(text: str) -> str:
    """Return a time as ISO 8601 in UTC, "" for another text."""
    try:
        moment = datetime.fromisoformat(text)
        moment = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return ""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def title_of_prompt(text: str) -> str:
    """Return the first sentence that says something; of a long paste the last line, its request."""
    lines = [line for line, _ in vocabulary.plain_lines(text.removeprefix(_PLAN))] or [text]
    if len(text) > LONG_PASTE and len(lines[-1]) < 300:
        lines = lines[::-1]
    sentences = chain.from_iterable(map(blocks.split, lines[:20]))
    return blocks.one_line(next((one for one in sentences if len(one.encode()) >= MIN_TITLE), text))


class _TurnPart:
    """Steps of a turn that belong together. `place`: among the parts of its turn, from 0."""

    def __init__(
        self, prompt: Moment | None, context: str, steps: Sequence[Moment], position: int
    ) -> None:
        self.steps, self.context = steps, context
        texts = [step for step in steps if step.kind == AGENT]
        self.narrative = "\n\n".join(step.text for step in texts)
        self.statements = [step.text for step in texts if step.origin != QUESTION]
        self.calls = [step for step in steps if step.is_call]
        self.edits = [call for call in self.calls if call.is_change]
        self.commits = [subject for call in self.calls for subject in call.commits]
        self.repairs = [(self.calls[a], self.calls[b]) for a, b in moments.repairs(self.calls)]
        self.turn_prompt = prompt
        # the later parts of a turn have no prompt
        self.prompt = prompt if not position and prompt else Moment(PERSON)
        self.request = self.prompt.text.removeprefix(_PLAN)

    @property
    def is_choice(self) -> bool:
        if self.prompt.origin not in events.TYPED or not self.context:
            return False
        return self.prompt.origin == events.ANSWER or vocabulary.chooses(self.prompt.text)

    @property
    def says_something(self) -> bool:
        """Whether work was done, or the answer is more than a courtesy."""
        return any(each.kind != OPEN for each in self.calls) or len(self.narrative) >= MIN_ANSWER


def _parts(steps: Sequence[Moment]) -> list[list[Moment]]:
    """Return the steps of a turn, cut where the work turns: at a text after much of it, or its end."""
    parts: list[list[Moment]] = [[]]
    calls = chars = 0
    for step in steps:
        is_text = step.kind == AGENT
        is_full = calls >= MAX_CALLS or chars >= MAX_CHARS
        if is_text and calls >= MIN_CALLS and (is_full or _is_end(parts[-1])):
            parts.append([])
            calls = chars = 0
        parts[-1].append(step)
        calls += not is_text
        chars += len(step.text) if is_text else 0
    if len(parts) > 1 and calls < MIN_CALLS:
        last = parts.pop()
        parts[-1] += last
    return parts


def _is_end(part: Sequence[Moment]) -> bool:
    """Whether the last step ends a piece of work: a commit, or the check that passes at last."""
    calls = [step for step in part if step.is_call]
    if not part[-1].is_call:
        return False
    fixed = {passed for _, passed in moments.repairs(calls)}
    return bool(calls[-1].commits) or len(calls) - 1 in fixed


def _record(part: _TurnPart, record_id: str, turn: Sequence[Moment]) -> Record:
    modified = _unique(call.about for call in part.calls if call.kind in moments.CHANGES)
    read = [path for call in part.calls for path in call.files]
    facts = _unique(_facts(part, modified))
    type_ = _type(part)
    named = vocabulary.concepts(f"{part.request[:1000]}\n{part.narrative}")
    also = {
        "how-it-works": type_ == "discovery" and len(part.narrative) >= MIN_EXPLANATION,
        "what-changed": bool(part.edits),
        "problem-solution": type_ == "bugfix",
    }
    return Record(
        id=record_id,
        kind=OBSERVATION,
        number=turn[0].number,
        at=utc(part.steps[-1].at) or utc(turn[-1].at),
        title=_title(part, type_),
        text=part.narrative,
        uuids=_uuids(part),
        branch=next((each.branch for each in reversed(turn) if each.branch), ""),
        type=type_,
        facts=tuple(blocks.one_line(fact, FACT_CHARS) for fact in facts[:MAX_FACTS]),
        concepts=tuple(name for name in CONCEPTS if name in named or also.get(name)),
        files_read=tuple(path for path in _unique(read) if path not in modified)[:MAX_FILES],
        files_modified=tuple(modified[:MAX_FILES]),
        commands=_commands(part.calls),
        errors=_errors(part.calls),
    )


def _type(part: _TurnPart) -> str:
    if part.repairs:
        return "bugfix"
    if part.prompt.is_correction:
        return "decision"
    if part.commits:
        return vocabulary.type_of_subject(part.commits[0])
    if part.edits:
        paths = [each.about for each in part.edits if each.kind in moments.CHANGES]
        only_prose = paths and all(path.endswith(PROSE) for path in paths)
        return "change" if only_prose else vocabulary.type_of_request(part.request)
    return "decision" if vocabulary.chooses(part.request) else "discovery"


def _title(part: _TurnPart, type_: str) -> str:
    """Return the subject of a commit, else a good sentence of the last text, else of the prompt."""
    if part.commits:
        return blocks.one_line(part.commits[0])
    for text in sorted(part.statements[:-5:-1], key=lambda text: len(text) < 120):
        for sentence in vocabulary.sentences(text):
            if _is_statement(sentence, 24):
                return blocks.one_line(sentence)
    if part.turn_prompt:
        return title_of_prompt(part.turn_prompt.text)
    about = next((call.command for call in part.calls if call.command), type_)
    return blocks.one_line(about)


def _facts(part: _TurnPart, modified: Sequence[str]) -> Iterator[str]:
    """Yield the single statements of a part of a turn that are worth finding on their own."""
    yield from part.commits
    if part.prompt.is_correction or part.is_choice:
        yield f"The user: {blocks.one_line(part.prompt.text, 280)}"
    by = f" after changes to {', '.join(modified[:3])}" if modified else ""
    for failed, _ in part.repairs:
        message = blocks.one_line(vocabulary.error_line(failed.text), 120)
        yield f"`{blocks.one_line(failed.command, 80)}` failed ({message}) and passed{by}"
    for sentence in _conclusions(part.statements):
        if not any(subject in sentence for subject in part.commits):
            yield sentence


def _conclusions(texts: Sequence[str]) -> list[str]:
    """Return up to four sentences that conclude, two of a text at most."""
    chosen = list[str]()
    for text in texts:
        if len(text) >= MIN_CONCLUSION:
            good = [line for line in vocabulary.sentences(text) if _is_statement(line, 40)]
            chosen += [line for line in good if vocabulary.concludes(line)][:2] or good[:1]
    return chosen[:4]


def _is_statement(sentence: str, least: int) -> bool:
    """Whether a sentence states something: neither a next step nor a courtesy nor a question."""
    if len(sentence) < least or sentence[0] in "{[" or sentence.endswith(("?", ":")):
        return False
    if vocabulary.is_chatter(sentence):
        return False
    return sum(map(str.isalpha, sentence)) > len(sentence) // 2


def _uuids(part: _TurnPart) -> tuple[str, ...]:
    """Return the records of the transcript: the prompt, texts, calls, and results that are errors."""
    uuids = [part.turn_prompt.uuid] if part.turn_prompt else []
    uuids += [uuid for step in part.steps for uuid in (step.uuid, step.result)]
    return tuple(_unique(filter(None, uuids)))


def _commands(calls: Iterable[Moment]) -> tuple[Command, ...]:
    ran = (call for call in calls if call.command and call.kind != OPEN)
    commands = (
        Command(
            text=blocks.cut(call.command, COMMAND_CHARS),
            status=call.status,
            failed=call.has_failed,
            output=_excerpt(call) if call.has_failed else "",
        )
        for call in ran
    )
    return tuple(_unique(commands)[-MAX_COMMANDS:])


def _errors(calls: Iterable[Moment]) -> tuple[str, ...]:
    """Return the errors of tools other than the shell, whose commands have theirs."""
    texts = (_excerpt(call) for call in calls if call.has_failed and not call.command)
    return tuple(_unique(text for text in texts if text)[:MAX_ERRORS])


def _excerpt(call: Moment) -> str:
    return failure.excerpt(call.about, call.text, ERROR_CHARS)


def _unique(values: Iterable[_T]) -> list[_T]:
    return list(dict.fromkeys(values))


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
    """Return the first prompts that say what is wanted; a program's if no person typed any."""
    typed = [record for record in prompts if record.origin in events.TYPED]
    asking = (events.PROMPT, events.QUEUED, events.PLAN)
    requests = [record for record in prompts if record.origin in asking]
    telling = [record for record in requests if len(record.text.split()) >= 4]
    return (telling or requests or [r for r in prompts if r not in typed] or typed)[:REQUESTS]


def _investigated(observations: Sequence[Record], searches: Sequence[str]) -> list[str]:
    names = _unique(path for record in observations for path in record.files_read)
    lines = []
    if names:
        more = f" and {len(names) - SUMMARY_FILES} more" if len(names) > SUMMARY_FILES else ""
        lines.append(f"Files: {', '.join(names[:SUMMARY_FILES])}{more}")
    if searches:
        lines.append(f"Searches: {', '.join(f'`{text}`' for text in searches)}")
    discoveries = [record.title for record in observations if record.type == "discovery"]
    return lines + discoveries[: MAX_LINES - len(lines)]


def _learned(observations: Sequence[Record]) -> list[str]:
    """Return a fact of each observation that found something out: its conclusion."""
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
    """Return the work done: commits, else changes by their titles, and the checks that pass."""
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
    lines = [text for text, status in todos.values() if status not in ("completed", "deleted")]
    texts = [record.text for record in observations[-2:] if record.text]
    if texts:
        for line, kind in vocabulary.plain_lines(vocabulary.tail(texts[-1], 3000)):
            if kind != vocabulary.HEADING and not line.endswith(":"):
                lines += filter(vocabulary.remains, blocks.split(line))
    return lines


def _notes(observations: Sequence[Record]) -> list[str]:
    """Return the user's decisions, and the checks whose last run failed."""
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
    last: dict[str, Command] = {}
    for command in (command for record in observations for command in record.commands):
        if tools.is_check(command.text):
            check = tools.same_as(command.text)
            last.pop(check, None)
            last[check] = command
    return last
