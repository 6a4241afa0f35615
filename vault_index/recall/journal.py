"""The journal's part of a session's start: what was done here last.

It comes from the files of the journal, without its index. It is data like a lesson: quoted and
defused, whatever a prompt or an agent said.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from vault_index import git
from vault_index.journal import listing, projects
from vault_index.journal.journal import Journal
from vault_index.journal.record import SUMMARY, Record, Session
from vault_index.text import quote, sentences

SUMMARIES = 2
RECORDS = 10
SESSIONS = 12  # that are looked at
MAX_CHARS = 3_200  # of what a session's start gets: most of it is for lessons
FIELD_CHARS = 280  # of a field of a summary
SUMMARY_CHARS = 900
TITLE_CHARS = 120
_SHOWN = ("request", "completed", "learned", "next_steps")  # of a summary

_HEAD, _INDEX = "## Done here before", "## Last records (`lessons journal show ID` has all of one)"


def section(journal: Journal, folder: Path, session: str, max_chars: int = MAX_CHARS) -> str:
    """Return the last summaries of a folder's project and branch, and an index of the last records.

    All of it is older than the session that starts. "" if the journal has nothing of the project,
    or is not wanted (`journal.session_start`).
    """
    if not journal.config.journal_session_start or not journal.folder.is_dir():
        return ""
    project = projects.known_project(journal, str(folder))
    before = [] if not project else _sessions_before(journal, project, session)
    if not before:
        return ""
    records = _index(before)
    room = max_chars - len("\n".join([_HEAD, _INDEX, *records])) - 4
    summaries: list[str] = []
    for summary in islice(_summaries(before, git.branch_of(folder)), SUMMARIES):
        if len(summary) <= room:
            summaries.append(summary)
            room -= len(summary) + 1
    parts = [_HEAD, *summaries] if summaries else []
    parts += [_INDEX, *records] if records else []
    text = "\n".join(parts)
    return text if len(text) <= max_chars else ""


def _sessions_before(journal: Journal, project: str, session: str) -> list[Session]:
    """Return the last sessions of a project that began before now, without this one, latest first."""
    now = datetime.fromtimestamp(time.time(), UTC).isoformat()
    there = listing.latest(journal, project, until=now, limit=SESSIONS)
    return [each for _, each in there if session not in (each.id, each.parent) and each.records]


def _summaries(sessions: list[Session], branch: str) -> Iterator[str]:
    """Yield the summaries of a branch, the latest first; of a new branch those of the others."""
    of_branch = [each for each in sessions if branch in (each.branch, *_branches(each))]
    for session in of_branch or sessions:
        for record in session.records:
            if record.kind == SUMMARY and any(record.fields.values()):
                yield _summary(session, record)


def _branches(session: Session) -> set[str]:
    return {record.branch for record in session.records if record.branch}


def _summary(session: Session, record: Record) -> str:
    """Return a summary as a quotation under a line with its date, branch and id."""
    where = f", {quote.defused_line(session.branch)}" if session.branch else ""
    lines = [f"- {_day(session.ended or session.began)}{where}, {record.id}"]
    room = SUMMARY_CHARS
    for name in _SHOWN:
        text = quote.defused_line(record.fields.get(name, ""))
        text = sentences.shorten_line(text, min(FIELD_CHARS, room)) if text else ""
        if text:
            lines += quote.lines(f"{name.replace('_', ' ').capitalize()}: {text}")
            room -= len(text)
    return "\n".join(lines)


def _index(sessions: list[Session]) -> list[str]:
    """Return the last records, the latest first, a line each."""
    records = [
        (record.at or session.began, record)
        for session in sessions
        for record in session.records
        if record.kind != SUMMARY
    ]
    latest = sorted(records, key=lambda pair: pair[0], reverse=True)[:RECORDS]
    return [
        f"- {record.id} {_day(at)} [{record.type or record.kind}]"
        f" {quote.defused_line(record.title)[:TITLE_CHARS]}".rstrip()
        for at, record in latest
    ]


def _day(at: str) -> str:
    try:
        return f"{datetime.fromisoformat(at).astimezone():%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError, OSError):
        return at[:16]
