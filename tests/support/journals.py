"""Journals for tests: sessions in the database, and a small embedder."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.support.embedders import WordEmbedder
from vault_index import state
from vault_index.config import Config
from vault_index.journal import archive
from vault_index.journal.journal import Journal
from vault_index.journal.record import Record, Session


def a_journal(home: Path, embedder: WordEmbedder | None = None) -> Journal:
    """Return an empty journal in a user's folder that is there."""
    return Journal(Config(home=home, embedder="none"), embedder)


def prompt(session: str, number: int, text: str, at: str, context: str = "") -> Record:
    """Return a prompt."""
    return Record(
        id=f"{session[:8]}-p{number}",
        kind="prompt",
        number=number,
        at=at,
        title=text[:60],
        text=text,
        uuids=(f"{session}-{number}",),
        context=context,
    )


def work(session: str, number: int, text: str, at: str, **more: Any) -> Record:
    """Return the work on a prompt."""
    record = Record(
        id=f"{session[:8]}-o{number}.1",
        kind="observation",
        number=number,
        at=at,
        title=text[:60],
        text=text,
        uuids=(f"{session}-{number}", f"{session}-{number}-answer"),
        type="change",
    )
    return replace(record, **more)


def keep(journal: Journal, session: str, *records: Record, project: str = "shop") -> Session:
    """Write a session with records, and return it."""
    kept = Session(session, "claude", f"/agent/{session}.jsonl", session[:8], project)
    kept = replace(kept, records=records, written=time.time_ns())
    with state.writing(journal.home) as db:
        db.execute("INSERT OR IGNORE INTO project VALUES (?, '', '[]')", [project])
        archive.write(db, kept)
    return kept


def drop(journal: Journal, session: Session) -> None:
    """Delete a session from the database alone."""
    with state.writing(journal.home) as db:
        db.execute("DELETE FROM session WHERE short = ?", [session.short])


def sessions(journal: Journal) -> dict[str, Session]:
    """Return all sessions with their records, by their ids, but for when they were taken in."""
    with state.reading(journal.home) as db:
        found = [archive.with_records(db, each) for each in archive.sessions(db)]
    return {each.id: replace(each, written=0) for each in found}
