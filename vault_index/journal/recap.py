"""The start of a session gets the last work of its project: summaries and records."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from vault_index import git
from vault_index.features import JournalTable
from vault_index.hotpath import chatter
from vault_index.journal import archive, projects
from vault_index.journal.journal import Journal
from vault_index.journal.record import OBSERVATION, PROMPT, SUMMARY, Record, Session
from vault_index.store import times
from vault_index.text import blocks, quote

if TYPE_CHECKING:
    from vault_index.config import Config

SUMMARIES = 2
RECORDS = 10
SESSIONS = 12  # that are looked at
MAX_JOURNAL_CHARS = 3_200  # of what a session's start gets: most of it is for lessons
FIELD_CHARS = 280  # of a field of a summary
SUMMARY_CHARS, SUMMARIES_CHARS = 900, 2_100  # of one; of all with their headers
MIN_SAID = 24  # characters: a shorter line may be in a summary by chance
MAX_PROMPT_CHARS = 8_000  # a longer one is a paste, whose title is its request
LINE_CHARS = 240  # of a record: a prompt of two sentences
_SHOWN = ("request", "completed", "learned", "next_steps")  # of a summary

_HEAD, _INDEX = "## Done here before", "## Last records (`lessons journal show ID` has all of one)"


def section(config: Config, folder: Path, session: str) -> str:
    """Return the last summaries of a folder's project and branch, and an index of the last records.

    All of it is older than the session that starts. "" if the journal has nothing of the project,
    or is not wanted (`journal.session_start`).
    """
    if not config[JournalTable].session_start:
        return ""
    project = projects.find_project(config.home, str(folder))
    if not project:
        return ""
    now = datetime.now(UTC).isoformat()
    sessions = archive.latest(Journal(config), project, until=now, limit=SESSIONS)
    others = (each for each in sessions if session not in (each.id, each.parent))
    before = [each for each in others if any(map(_says_something, each.records))]
    if not before:
        return ""
    text = _HEAD
    for summary in islice(_summaries(before, git.branch_of(folder)), SUMMARIES):
        text += _fitting(f"\n{summary}", SUMMARIES_CHARS - len(text))
    text = "" if text == _HEAD else text
    begin = f"{text}\n{_INDEX}".lstrip()
    lines = ""
    for line in islice(_index(before, text), RECORDS):
        lines += _fitting(f"\n{line}", MAX_JOURNAL_CHARS - len(begin) - len(lines))
    return begin + lines if lines else text


def _fitting(text: str, room: int) -> str:
    return text if len(text) <= room else ""


def _says_something(record: Record) -> bool:
    """Whether a record is of work, or a prompt that is more than a word or thanks."""
    if record.kind == PROMPT:
        return len(record.text.split()) > 1 and not chatter.why_skipped(record.text)
    return bool(record.commands or record.files_read or record.files_modified)


def _summaries(sessions: list[Session], branch: str) -> Iterator[str]:
    """Yield the summaries of a branch, the latest first; for a new branch, of all others."""
    of_branch = [
        each
        for each in sessions
        if branch == each.branch
        or (branch and branch in {record.branch for record in each.records})
    ]
    for session in of_branch or sessions:
        for record in session.records:
            if record.kind == SUMMARY and any(record.fields.values()):
                yield _summary(session, record)


def _summary(session: Session, record: Record) -> str:
    """Return a summary as a quotation under a line with its date, branch and id."""
    where = f", {quote.defused_line(session.branch)}" if session.branch else ""
    lines = [f"- {times.local(session.ended or session.began)[:16]}{where}, {record.id}"]
    room = SUMMARY_CHARS
    for name in _SHOWN:
        value = record.fields.get(name, "")
        text = quote.defused_line(value.partition("\n")[0] if name == _SHOWN[0] else value)
        text = blocks.one_line(text, min(FIELD_CHARS, room))
        if text:
            lines += quote.lines(f"{name.replace('_', ' ').capitalize()}: {text}")
            room -= len(text)
    return "\n".join(lines)


def _index(sessions: list[Session], summary: str) -> Iterator[str]:
    """Yield a line for each record, the latest first, that says more than the others and `summary`."""
    records = [
        (record.at or session.began, record, session.id)
        for session in sessions
        for record in session.records
        if record.kind == OBSERVATION or _says_something(record)
    ]
    prompts = {
        (session, record.title): blocks.one_line(record.text, LINE_CHARS)
        for _, record, session in records
        if record.kind == PROMPT and len(record.text) <= MAX_PROMPT_CHARS
    }
    seen: set[str] = set()
    for when, record, session in sorted(records, key=lambda each: each[0], reverse=True):
        text = prompts.get((session, record.title), record.title)
        line = quote.defused_line(text)[:LINE_CHARS]
        if line in seen or (len(line) >= MIN_SAID and line in summary):
            continue
        seen.add(line)
        kind = record.type or record.kind
        yield f"- {record.id} {times.local(when)[:16]} [{kind}] {line}".rstrip()
