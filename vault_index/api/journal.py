"""Questions and commands about the journal, which is one for all vaults of a user."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vault_index.journal import forget, index, listing, overview, projects, take
from vault_index.journal.record import SUMMARY, Record, Session, short_id
from vault_index.search import journal as finding
from vault_index.search import timeline as around

if TYPE_CHECKING:
    from vault_index.api import Caller
    from vault_index.journal.journal import Journal


def search(journal: Journal, project: str = "", folder: str = "", **options: Any) -> dict[str, Any]:
    """Find records: `hits`, how many `older` ones the window leaves out, `text_only`, `embedder`.

    `project` is a name, `folder` one of a project's; with neither all projects are searched. The
    other options are those of `search.journal.JournalQuery`.
    """
    raise NotImplementedError


def timeline(
    journal: Journal,
    anchor: str,
    before: int = 10,
    after: int = 10,
    full: bool = False,
    project: str = "",
    folder: str = "",
) -> dict[str, Any]:
    """Return the `records` around an anchor in order of time, and the id of the `anchor`.

    The anchor is the id of a record or session, an ISO time, `yesterday 14:00`, or a query. With
    `full` a record has all that `show` returns.
    """
    raise NotImplementedError


def show(journal: Journal, name: str) -> dict[str, Any]:
    """Return a `session` and its `records`; of a record's id only that record."""
    file, session, records = listing.session_of(journal, name)
    return {
        "session": _session(file, session),
        "records": [record_as_json(session, record) for record in records],
    }


def sessions(
    journal: Journal,
    project: str = "",
    folder: str = "",
    since: str | None = None,
    until: str = "",
    limit: int = 20,
) -> dict[str, Any]:
    """List `sessions`, the latest first; times are ISO 8601, an empty one is no limit."""
    name = _project(journal, project, folder)
    if name is None:
        return {"sessions": []}
    latest = listing.latest(journal, name, since or "", until, limit)
    return {"sessions": [_session(file, session) for file, session in latest]}


def status(journal: Journal) -> dict[str, Any]:
    """Return what is recorded and kept, and what went wrong: see `overview.of`."""
    return overview.of(journal)


def import_(
    journal: Journal, caller: Caller, since: str = "", project: str = "", dry_run: bool = False
) -> dict[str, Any]:
    """Take in the transcripts of this machine that went on since a time, and index them."""
    raise NotImplementedError


def forget_(journal: Journal, caller: Caller, **chosen: str) -> dict[str, Any]:
    """Take out what is named, see `journal.forget`: `sessions`, `records`, and the `proof` in words."""
    raise NotImplementedError


def record_as_json(session: Session, record: Record) -> dict[str, Any]:
    """Return all that is known of a record, with its session, project and branch."""
    values = asdict(record)
    values["session"], values["project"] = session.id, session.project
    values["branch"] = record.branch or session.branch
    values["text"] = record.text or "\n".join(
        f"{name.replace('_', ' ')}: {text}" for name, text in record.fields.items()
    )
    return values


def _session(file: Path, session: Session) -> dict[str, Any]:
    """Return a session without its records, but with the files it modified and what it was about."""
    modified = dict.fromkeys(path for record in session.records for path in record.files_modified)
    summary = next((each for each in session.records if each.kind == SUMMARY), None)
    asked = summary.fields.get("request", "") if summary else ""
    typed = next((each.title for each in session.records if each.kind != SUMMARY), "")
    names = (
        "id",
        "agent",
        "project",
        "folder",
        "branch",
        "began",
        "ended",
        "prompts",
        "tool_calls",
    )
    values: dict[str, Any] = {name: getattr(session, name) for name in names}
    values |= {
        "short": short_id(session.id),
        "parent": session.parent,
        "transcript": session.transcript,
        "file": str(file),
    }
    return {**values, "request": " ".join((asked or typed).split()), "files": list(modified)}


def _project(journal: Journal, project: str, folder: str) -> str | None:
    """Return the name of the project that is meant, "" for all of them; None for one without sessions."""
    if project or not folder:
        return project
    return projects.known_project(journal, folder) or None
