"""Questions and commands about the journal, which is one for all vaults of a user."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vault_index.api.question import Caller, command, question
from vault_index.errors import VaultError
from vault_index.journal import archive, forget, importing, index, projects
from vault_index.journal.record import PROMPT, SUMMARY, TYPES, Record, Session, short_id
from vault_index.search.journal import JournalHit, around, find
from vault_index.search.query import HITS, OF_JOURNAL, Query
from vault_index.store import filters
from vault_index.transcripts import events
from vault_index.transcripts.signs import CONCEPTS
from vault_index.transcripts.vocabulary import one_line

if TYPE_CHECKING:
    from vault_index.journal.journal import Journal

TITLE_CHARS = 80  # of a session
_ASKING = (events.PROMPT, events.AUTOMATED)


@question
def search(
    journal: Journal,
    text: str = "",
    k: int = 0,
    kinds: Sequence[str] = (),
    file: str = "",
    concept: str = "",
    type: str = "",
    project: str = "",
    folder: str = "",
    since: str | None = None,
    until: str = "",
    explain: bool = False,
) -> dict[str, Any]:
    """Find records: `hits`, how many `older` ones the window leaves out, `text_only`, `embedder`.

    `project` is a name or `all`, `folder` one of a project's; with neither all projects are searched:
    `project` is the one that was. `missing` is "sessions" where none is kept, "project" where none is of
    it. `since` is None for the usual window, "" for all times, `k` 0 for as many hits as the settings
    say. The others are those of `search.Query`. Raises VaultError for an unknown type, concept or
    project.
    """
    _require("type", type, TYPES)
    _require("concept", concept, CONCEPTS)
    answer: dict[str, Any] = {"hits": [], "older": 0, "text_only": "", "project": ""}
    answer["embedder"] = journal.config.embedder
    if _is_empty(journal):
        return {**answer, "missing": "sessions"}
    name = projects.choose(journal, project, folder)
    if name is None:
        return {**answer, "missing": "project"}
    answer["project"] = name
    narrowed = {"type": type, "since": since, "until": until}
    narrowed = {key: value for key, value in narrowed.items() if value}
    query = Query(
        text,
        k or journal.config.search.hits or HITS,
        kinds=tuple(kinds) or OF_JOURNAL,
        filters=filters.from_json(narrowed),
        project=answer["project"],
        explain=explain,
        file=file,
        concept=concept,
    )
    results = find(journal, query, everything=since == "")
    answer["hits"] = [hit.as_json(explain=explain) for hit in results.hits]
    answer |= {"older": results.older, "text_only": results.text_only}
    return {**answer, "missing": ""}


@question
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

    The anchor is as `search.timeline.around` reads it; `anchor` is "" where it is a time, and `before`
    is how many records are before it. With `full` a record has all that `show` returns. A record or
    session that is named is found in any project. `missing` is as in `search`.
    """
    if _is_empty(journal):
        return {"records": [], "anchor": "", "before": 0, "missing": "sessions"}
    name = projects.choose(journal, project, folder)
    moments = around(journal, anchor, before, after, name, anywhere=not project)
    records = [hit.as_json() for hit in moments.records]
    if full:
        records = _with_all(journal, moments.records)
    marked = "" if moments.anchor is None else moments.records[moments.anchor].id
    missing = "project" if name is None and not records else ""
    return {"records": records, "anchor": marked, "before": moments.before, "missing": missing}


def _with_all(journal: Journal, hits: Iterable[JournalHit]) -> list[dict[str, Any]]:
    """Return hits with all that their session files say of them; as they are where none is readable."""
    by_file: dict[str, Session | None] = {}
    records = []
    for hit in hits:
        if hit.path not in by_file:
            with contextlib.suppress(VaultError):
                by_file[hit.path] = archive.read(journal.folder / hit.path)
        session = by_file.setdefault(hit.path, None)
        whole = (
            next((each for each in session.records if each.id == hit.id), None) if session else None
        )
        more = record_as_json(session, whole) if session and whole else {}
        records.append({**hit.as_json(), **more})
    return records


@question
def show(journal: Journal, name: str) -> dict[str, Any]:
    """Return a `session` and its `records`; of a record's id only that record."""
    file, session, records = archive.find(journal, name)
    return {
        "session": _session(file, session),
        "records": [record_as_json(session, record) for record in records],
    }


@question
def sessions(
    journal: Journal,
    project: str = "",
    folder: str = "",
    since: str | None = None,
    until: str = "",
    limit: int = 20,
) -> dict[str, Any]:
    """List `sessions`, the latest first; times are ISO 8601, an empty one is no limit."""
    name = projects.choose(journal, project, folder)
    if name is None:
        return {"sessions": []}
    latest = archive.latest(journal, name, since or "", until, limit)
    return {"sessions": [_session(file, session) for file, session in latest]}


@question
def days(journal: Journal, project: str = "") -> dict[str, Any]:
    """Count the sessions of each day, `2026-11-22`, of which some are kept: `days`, by UTC."""
    return {"days": archive.days(journal, projects.choose(journal, project) or "")}


@question
def day(journal: Journal, day: str, project: str = "", limit: int = 100) -> dict[str, Any]:
    """Return the `sessions` that began on a day, by UTC, the latest first, and whether there are `more`.

    Each is as `sessions` returns it, with the `summary` of its work by fields.
    """
    begins = datetime.fromisoformat(f"{day}T00:00:00+00:00")
    ends = ""
    with contextlib.suppress(OverflowError):  # the calendar ends with this day
        ends = (begins + timedelta(days=1)).isoformat()
    name = projects.choose(journal, project) or ""
    of_day = archive.latest(journal, name, begins.isoformat(), ends, limit + 1)
    return {
        "sessions": [
            {**_session(file, session), "summary": _summary(session)}
            for file, session in of_day[:limit]
        ],
        "more": len(of_day) > limit,
    }


@question
def status(journal: Journal) -> dict[str, Any]:
    """Return what is recorded and kept, and what went wrong: see `overview.of`."""
    return archive.overview(journal)


@command
def import_transcripts(
    journal: Journal,
    caller: Caller,
    since: str | None = None,
    project: str = "",
    folder: str = "",
    dry_run: bool = False,
) -> dict[str, Any]:
    """Take in the transcripts of this machine that went on since a time, and index them.

    `since` is ISO 8601, "" for all, None for the usual 30 days; only those of a project, if one is
    named or its folder. The answer is `importing.Imported`, with `problems` as lines.
    """
    limit = datetime.fromisoformat(since).timestamp() if since else None if since is None else 0.0
    name = projects.name_for(journal, folder) if folder and not project else ""
    if project:
        name = projects.choose(journal, project, others=importing.project_names(journal)) or ""
    progress = None if dry_run else caller.progress_of("reading transcripts")
    done = importing.import_all(journal, limit, name, dry_run=dry_run, progress=progress)
    answer = asdict(done)
    answer["problems"] = [f"{path}: {message}" for path, message in done.problems]
    if not dry_run:
        if went := forget.expire(journal).went(journal):
            caller.note(f"note: {went}")
        stats = index.sync(journal, progress=caller.progress_of("indexing the journal"))
        answer["seconds"] += stats.seconds
        answer["problems"] += [f"{problem.path}: {problem.message}" for problem in stats.problems]
    return answer


@command
def bring_up_to_date(journal: Journal, caller: Caller, rebuild: bool = False) -> dict[str, Any]:
    """Bring the index of the journal up to date: `sessions` written, and a `summary` in words."""
    progress = caller.progress_of("indexing the journal")
    stats = index.sync(journal, rebuild=rebuild, progress=progress)
    written = stats.added + stats.changed
    summary = f"{written} sessions, {stats.rows} rows, in {stats.seconds:.1f} s"
    return {"sessions": written, "removed": stats.removed, "rows": stats.rows, "summary": summary}


@command
def erase(
    journal: Journal,
    caller: Caller,
    session: str = "",
    project: str = "",
    before: str = "",
    matching: str = "",
) -> dict[str, Any]:
    """Take out what is named, see `forget.forget`: `forget.Forgotten`, with its `proof` in words."""
    del caller
    name = projects.choose(journal, project) or ""
    done = forget.forget(journal, session=session, project=name, before=before, matching=matching)
    return {**asdict(done), "proof": done.proof}


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
    asked = summary.fields.get("request", "").partition("\n")[0] if summary else ""
    typed = next((each.title for each in session.records if each.kind != SUMMARY), "")
    request = " ".join((asked or typed).split())
    names = (
        "id",
        "agent",
        "project",
        "folder",
        "branch",
        "began",
        "ended",
        "tool_calls",
        "errors",
    )
    values: dict[str, Any] = {name: getattr(session, name) for name in names}
    values |= {
        "short": short_id(session.id),
        "title": one_line(request, TITLE_CHARS),
        "prompts": sum(each.origin in _ASKING for each in session.records),
        # with those typed in other ways, such as slash commands; or those of the program that asked
        "typed": session.prompts or sum(each.kind == PROMPT for each in session.records),
        "parent": session.parent,
        "transcript": session.transcript,
        "file": str(file),
    }
    return {**values, "request": request, "files": list(modified)}


def _summary(session: Session) -> dict[str, str]:
    """Return the fields of a session's summary, {} without one."""
    summary = next((each for each in session.records if each.kind == SUMMARY), None)
    return dict(summary.fields) if summary else {}


def _is_empty(journal: Journal) -> bool:
    """Whether no session is kept: nothing is found then, and no index is missed."""
    return next(archive.all_files(journal.folder), None) is None


def _require(what: str, value: str, names: Sequence[str]) -> None:
    if value and value not in names:
        raise VaultError(f"no {what} {value!r:.60}", f"choose one of {', '.join(names)}")
