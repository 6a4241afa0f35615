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
from vault_index.store import moments
from vault_index.text import blocks, quote

if TYPE_CHECKING:
    from vault_index.config import Config

SUMMARIES = 2
RECORDS = 10
SESSIONS = 12  # that are looked at
MAX_JOURNAL_CHARS = 3_200  # of what a session's start gets: most of it is for lessons
FIELD_CHARS = 280  # of a field of a summary
SUMMARY_CHARS = 900
TITLE_CHARS = 120
_SHOWN = ("request", "completed", "learned", "next_steps")  # of a summary

_HEAD, _INDEX = "## Done here before", "## Last records (`lessons journal show ID` has all of one)"


def section(config: Config, folder: Path, session: str) -> str:
    """Return the last summaries of a folder's project and branch, and an index of the last records.

    All of it is older than the session that starts. "" if the journal has nothing of the project,
    or is not wanted (`journal.session_start`).
    """
    journal = Journal(config)
    if not config[JournalTable].session_start or not journal.folder.is_dir():
        return ""
    project = projects.find_project(journal.folder, str(folder))
    now = datetime.now(UTC).isoformat()
    there = archive.latest(journal, project, until=now, limit=SESSIONS) if project else []
    others = (each for _, each in there if session not in (each.id, each.parent))
    before = [each for each in others if any(map(_says_something, each.records))]
    if not before:
        return ""
    lines = [_INDEX, *_index(before)]
    room = MAX_JOURNAL_CHARS - len("\n".join([_HEAD, *lines])) - 4
    summaries: list[str] = []
    for summary in islice(_summaries(before, git.branch_of(folder)), SUMMARIES):
        if len(summary) <= room:
            summaries.append(summary)
            room -= len(summary) + 1
    text = "\n".join([_HEAD, *summaries, *lines] if summaries else lines)
    return text if len(text) <= MAX_JOURNAL_CHARS else ""


def _says_something(record: Record) -> bool:
    """Whether a record is of work, or a prompt that is more than a word or thanks."""
    if record.kind == PROMPT:
        return len(record.text.split()) > 1 and not chatter.why_skipped(record.text)
    return bool(record.commands or record.files_read or record.files_modified)


def _summaries(sessions: list[Session], branch: str) -> Iterator[str]:
    """Yield the summaries of a branch, the latest first; of a new branch those of the others."""
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
    lines = [f"- {moments.local(session.ended or session.began)[:16]}{where}, {record.id}"]
    room = SUMMARY_CHARS
    for name in _SHOWN:
        said = record.fields.get(name, "")
        text = quote.defused_line(said.partition("\n")[0] if name == _SHOWN[0] else said)
        text = blocks.shorten_line(text, min(FIELD_CHARS, room)) if text else ""
        if text:
            lines += quote.lines(f"{name.replace('_', ' ').capitalize()}: {text}")
            room -= len(text)
    return "\n".join(lines)


def _index(sessions: list[Session]) -> list[str]:
    records = [
        (record.at or session.began, record)
        for session in sessions
        for record in session.records
        if record.kind == OBSERVATION or _says_something(record)
    ]
    latest = sorted(records, key=lambda pair: pair[0], reverse=True)[:RECORDS]
    return [
        f"- {record.id} {moments.local(at)[:16]} [{record.type or record.kind}]"
        f" {quote.defused_line(record.title)[:TITLE_CHARS]}".rstrip()
        for at, record in latest
    ]
