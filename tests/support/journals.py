"""Journals for tests: session files on disk, and a small embedder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.support.embedders import WordEmbedder
from tests.support.files import write
from vault_index.config import Config
from vault_index.journal import session_file
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
    """Return what was done for a prompt."""
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


def keep(journal: Journal, session: str, *records: Record, project: str = "shop") -> Path:
    """Write the file of a session, and return it."""
    kept = Session(session, "claude", f"/agent/{session}.jsonl", project, records=records)
    file = journal.folder / project / "2026-11" / f"20-{session}.md"
    return write(file, session_file.dump(kept))
