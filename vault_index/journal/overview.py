"""The state of the journal, for `lessons status` and `lessons journal status`. Reads only."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from vault_index.errors import VaultError
from vault_index.journal import listing, projects, take
from vault_index.journal.journal import Journal, open_index


def of(journal: Journal) -> dict[str, Any]:
    """Return what is recorded and kept, when it was written last, and what went wrong, as JSON values."""
    totals = listing.totals(journal)
    last = datetime.fromtimestamp(totals.last, UTC).isoformat() if totals.last else ""
    return {
        "folder": str(journal.folder),
        "recorded": projects.recorded_folders(journal),
        "sessions": totals.sessions,
        "records": totals.records,
        "projects": totals.projects,
        "mb": totals.bytes / 1e6,
        "last": last,
        "unread": totals.unread,
        "waiting": len(take.waiting(journal)),
        "index": _index(journal) if totals.sessions else {},
        "problems": totals.problems,
        "complaints": take.complaints(journal),
    }


def _index(journal: Journal) -> dict[str, Any]:
    try:
        opened = open_index(journal)
    except VaultError as error:
        return {"error": f"{error.message}; {error.hint}"}
    return {"embedder": opened.embedder, "sessions": opened.sessions}
