"""The journal in words: a record, a session, and the state of the whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from vault_index.journal.record import (
    Around,
    JournalHit,
    JournalHits,
    KeptRecord,
    ListedSession,
)
from vault_index.retrieval.hit import strength_of
from vault_index.store.times import lasted, local
from vault_index.text.words import count

if TYPE_CHECKING:
    from vault_index.entrypoints.recording import JournalStatus
    from vault_index.journal.archive import JournalOverview

RUBRICS = ("facts", "concepts", "files_read", "files_modified", "errors")  # as a record has them
MAX_SHOWN = 5  # projects, problems and complaints
NOTHING = {
    "": "nothing in the journal matches",
    "sessions": "the journal has no session yet",
    "project": "the journal has no session of this project; `all` is every project",
}


def nothing(answer: JournalHits | Around) -> str:
    """Return the reason for which a search or a timeline has nothing."""
    return NOTHING[answer.missing]


def kind(record: KeptRecord) -> str:
    """Return the type of an observation, the kind of any other record."""
    return record.type or record.kind


def heading(record: KeptRecord) -> str:
    """Return the kind and the title of a record."""
    return f"[{kind(record)}] {record.title or '(no title)'}"


def where(record: KeptRecord | ListedSession) -> str:
    """Return the project and branch of a record or session."""
    return f"{record.project}@{record.branch}" if record.branch else record.project


def session_id(record: KeptRecord) -> str:
    """Return the short id of a record's session, which begins the record's own."""
    return record.id.rpartition("-")[0]


def place(record: KeptRecord) -> str:
    """Return the id of a record, its project and branch, and its time."""
    return " · ".join(filter(None, (record.id, where(record), local(record.at))))


def percent(hit: JournalHit) -> str:
    """Return the score of a hit in brackets; "" where it has none."""
    return f" ({strength_of(hit.score, by_words=hit.by_words)})" if hit.score else ""


def details(record: KeptRecord) -> Iterator[str]:
    """Yield the parts of a record below its heading: text, lists, commands with their output."""
    if " ".join(record.text.split()) != record.title:
        yield record.text.strip()
    for name in RUBRICS:
        if values := getattr(record, name):
            yield from (f"{name.replace('_', ' ')}:", *(f"- {each}" for each in values))
    for command in record.commands:
        ended = "failed" if command.failed else ""
        ended = ended if command.status is None else f"exit {command.status}"
        yield f"$ {command.text}" + (f"  ({ended})" if ended else "")
        yield command.output


def session_about(session: ListedSession) -> str:
    """Return a session's prompts, changed files and duration."""
    about = [count(session.typed, "prompt"), count(len(session.files), "file")]
    about.append(lasted(session.began, session.ended))
    return ", ".join(filter(None, about))


def recorded(state: JournalOverview) -> str:
    """Return the projects whose sessions are recorded."""
    return ", ".join("every project" if folder == "*" else folder for folder in state.recorded)


def lines(state: JournalOverview) -> Iterator[str]:
    """Yield the state of the journal for people, a line each."""
    whose, hooks = recorded(state), ", ".join(state.hooks)
    yield f"recorded   {whose or 'nothing: run `lessons install claude --journal`'}"
    if whose:
        yield f"hooks      {hooks or 'not installed: only a watcher sees what grew'}"
    yield from _contents(state)
    if state.unread:
        yield f"unread     {count(state.unread, 'line')} of transcripts of a kind nobody described"
    index = state.index
    if index.error:
        yield f"index      {index.error}"
    elif index.embedder:
        behind = state.sessions - index.sessions
        to_come = f", {behind} to come" if behind > 0 else ""
        yield f"index      {count(index.sessions, 'session')}, {index.embedder}{to_come}"
    if state.waiting:
        yield f"waiting    {count(state.waiting, 'transcript')} to be taken in"
    for complaint in state.complaints[-MAX_SHOWN:]:
        yield f"log        {complaint}"


def _contents(state: JournalOverview) -> Iterator[str]:
    if not state.sessions:
        older = state.before and f" (files of another version stay in {state.before})"
        yield f"journal    {state.folder}: empty; run `lessons journal import`{older}"
        return
    records = [count(state.records[each], each) for each in ("prompt", "observation")]
    held = ", ".join([count(state.sessions, "session"), *records])
    yield f"journal    {state.folder}: {held}, {state.mb:.1f} MB"
    yield f"last       {local(state.last)}"
    projects = sorted(state.projects.items(), key=lambda item: -item[1])
    largest = ", ".join(f"{name} {number}" for name, number in projects[:MAX_SHOWN])
    yield f"projects   {largest}{_more(projects)}"


def _more(values: Sequence[Any]) -> str:
    return f" and {len(values) - MAX_SHOWN} more" if len(values) > MAX_SHOWN else ""


def status_lines(found: JournalStatus) -> Iterator[str]:
    """Yield the state of the journal in a line, and its first problems."""
    state = found.journal
    names = recorded(state)
    if state.before:
        how = "`lessons journal import` takes the sessions in again"
        yield f"journal    {state.before} is of another version and stays; {how}"
        return
    if not names and not state.sessions:
        yield "journal    empty: see `lessons journal --help`"
        return
    kept = f"{count(state.sessions, 'session')}, recorded: {names or 'nothing'}"
    unread = f", {count(state.unread, 'unread line')}" if state.unread else ""
    yield f"journal    {kept}{unread}; more: `lessons journal status`"
    for complaint in state.complaints[-3:]:
        yield f"problem    journal: {complaint}"
