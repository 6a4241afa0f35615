"""The summary of a session, made by rule from its records: six fields, each of a few lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from vault_index.journal.record import FIELDS, OBSERVATION, PROMPT, SUMMARY, Command, Record
from vault_index.transcripts import events, signs, tools, vocabulary

MOST_LINES = 8  # of a field
LINE_CHARS = 300
REQUESTS = 3  # prompts that say what a session is about
MOST_FILES = 12


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
        fields={name: "\n".join(_lines(fields[name])) for name in FIELDS if _lines(fields[name])},
    )


def _lines(texts: Iterable[str]) -> list[str]:
    lines = [vocabulary.one_line(text, LINE_CHARS) for text in texts if text.strip()]
    return list(dict.fromkeys(lines))[:MOST_LINES]


def _requests(prompts: Sequence[Record]) -> list[Record]:
    """Return the first prompts that say what is wanted; those of programs if there are no others."""
    typed = [record for record in prompts if record.origin in events.TYPED]
    asking = (events.PROMPT, events.QUEUED, events.PLAN)
    said = [record for record in prompts if record.origin in asking]
    telling = [record for record in said if len(record.text.split()) >= 4]
    return (telling or said or [r for r in prompts if r not in typed] or typed)[:REQUESTS]


def _investigated(observations: Sequence[Record], searches: Sequence[str]) -> list[str]:
    files = dict.fromkeys(path for record in observations for path in record.files_read)
    lines = []
    if files:
        names = list(files)
        more = f" and {len(names) - MOST_FILES} more" if len(names) > MOST_FILES else ""
        lines.append(f"Files: {', '.join(names[:MOST_FILES])}{more}")
    if searches:
        lines.append(f"Searches: {', '.join(f'`{text}`' for text in searches)}")
    asked = [record.title for record in observations if record.type == "discovery"]
    return lines + asked[: MOST_LINES - len(lines)]


def _learned(observations: Sequence[Record]) -> list[str]:
    """Return a fact of each observation that found something out: what it concludes."""
    lines = []
    for record in observations:
        if record.type in ("discovery", "bugfix", "decision"):
            facts = [fact for fact in record.facts if not _is_told_elsewhere(fact, record)]
            lines += facts[: 2 if record.type == "bugfix" else 1]
    return lines[-MOST_LINES:]


def _is_told_elsewhere(fact: str, record: Record) -> bool:
    """Whether another field has a fact: the user's words, the subject of a commit."""
    return fact.startswith("The user: ") or (fact == record.title and bool(record.files_modified))


def _completed(observations: Sequence[Record]) -> list[str]:
    """Return what was done: commits, else changes by their titles, and the checks that pass."""
    lines, passing = [], dict[str, None]()
    for record in observations:
        if record.files_modified or any(tools.is_commit(c.text) for c in record.commands):
            files = ", ".join(record.files_modified[:5])
            lines.append(f"{record.title} ({files})" if files else record.title)
        for command in record.commands:
            if tools.is_check(command.text) and not tools.is_commit(command.text):
                check = tools.same_as(command.text)
                passing.pop(check, None)
                if command.status == 0 and not command.failed:
                    passing[check] = None
    lines = list(dict.fromkeys(lines))
    if passing:
        lines = lines[-(MOST_LINES - 1) :]
        lines.append(f"Passing: {', '.join(f'`{check}`' for check in list(passing)[-5:])}")
    return lines[-MOST_LINES:]


def _next_steps(observations: Sequence[Record], todos: Mapping[str, tuple[str, str]]) -> list[str]:
    """Return the open todos, and what the last message says remains."""
    lines = [text for text, status in todos.values() if status not in ("completed", "deleted")]
    said = [record.text for record in observations[-2:] if record.text]
    if said:
        last = vocabulary.tail(said[-1], 3000)
        in_rest = False
        for line, kind in vocabulary.plain_lines(last):
            if kind == vocabulary.HEADING or line.endswith(":"):
                in_rest = vocabulary.is_about_rest(line)
            elif in_rest:
                lines.append(line)
            else:
                lines += [
                    one for one in vocabulary.split_sentences(line) if vocabulary.remains(one)
                ]
    return lines


def _notes(observations: Sequence[Record]) -> list[str]:
    """Return what the user decided, and the checks whose last run failed."""
    decisions = [
        next((fact for fact in record.facts if fact.startswith("The user: ")), record.title)
        for record in observations
        if record.type == "decision"
    ]
    failing: dict[str, Command] = {}
    for record in observations:
        for command in record.commands:
            check = tools.same_as(command.text)
            failing.pop(check, None)
            if command.failed and tools.is_check(command.text):
                failing[check] = command
    errors = [
        f"Not resolved: `{check}`: {signs.error_line(command.output)}"
        for check, command in list(failing.items())[-3:]
    ]
    return decisions[-(MOST_LINES - len(errors)) :] + errors
