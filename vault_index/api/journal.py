"""Questions and commands about the journal, which is one for all vaults of a user."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from vault_index.api import codec
from vault_index.api.question import Caller, command, question, recorded
from vault_index.errors import VaultError
from vault_index.journal.record import (
    CONCEPTS,
    PROMPT,
    SUMMARY,
    TYPES,
    Around,
    JournalHit,
    JournalHits,
    KeptRecord,
    ListedSession,
    Record,
    Session,
    SessionHead,
    SessionRecords,
)
from vault_index.retrieval.hit import HITS, OF_JOURNAL, Query
from vault_index.store.filters import Filter
from vault_index.text.blocks import one_line
from vault_index.transcripts import events

if TYPE_CHECKING:
    from vault_index.journal.archive import JournalOverview
    from vault_index.journal.forget import Forgotten
    from vault_index.journal.importing import Imported
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
) -> JournalHits:
    """Find records.

    `project` is a name or `all`, `folder` a folder of a project; with neither all projects are searched.
    `since` is None for the usual window, "" for all times; `k` 0 for as many hits as the settings say.
    Raises VaultError for an unknown type, concept or project.
    """
    from vault_index.journal import archive, projects
    from vault_index.retrieval.journal import find

    _require("type", type, TYPES)
    _require("concept", concept, CONCEPTS)
    if archive.is_empty(journal):
        return JournalHits(missing="sessions")
    name = projects.choose(journal, project, folder)
    if name is None:
        return JournalHits(missing="project")
    narrowed = {"type": type, "since": since, "until": until}
    narrowed = {key: value for key, value in narrowed.items() if value}
    query = Query(
        text,
        k or journal.config.search.hits or HITS,
        kinds=tuple(kinds) or OF_JOURNAL,
        filters=codec.from_json(Filter, narrowed),
        project=name,
        file=file,
        concept=concept,
    )
    hits = find(journal, query, everything=since == "")
    return replace(hits, project=name, embedder=journal.config.embedder)


@question
def timeline(
    journal: Journal,
    anchor: str,
    before: int = 10,
    after: int = 10,
    full: bool = False,
    project: str = "",
    folder: str = "",
) -> Around:
    """Return the records around an anchor, as `search.journal.around` reads it, in order of time.

    With `full` a record has all that `show` returns. A record or session that is named is found in any
    project.
    """
    from vault_index.journal import archive, projects
    from vault_index.retrieval.timeline import around

    if archive.is_empty(journal):
        return Around((), missing="sessions")
    name = projects.choose(journal, project, folder)
    moments = around(journal, anchor, before, after, name, anywhere=not project)
    records = _with_all(journal, moments.records) if full else moments.records
    missing = "project" if name is None and not records else ""
    return replace(moments, records=records, missing=missing)


def _with_all(journal: Journal, hits: Sequence[JournalHit]) -> tuple[JournalHit, ...]:
    """Return hits with all that is kept of them; as they are where that was forgotten meanwhile."""
    from vault_index.journal import archive

    whole: dict[str, KeptRecord] = {}
    for name in {hit.session for hit in hits}:
        with contextlib.suppress(VaultError):
            session = archive.find(journal, name)
            whole |= {each.id: _kept(session, each) for each in session.records}
    return tuple(
        replace(hit, **_values(whole[hit.id], KeptRecord), is_whole=True)
        if hit.id in whole
        else hit
        for hit in hits
    )


@recorded
def show(journal: Journal, name: str) -> SessionRecords:
    """Return a session and its records; of a record's id only that record."""
    from vault_index.journal import archive

    session = archive.find(journal, name)
    return _shown(session, session.records)


@recorded
def export(journal: Journal, name: str = "", project: str = "", folder: str = "") -> str:
    """Return a session as markdown, or all sessions of a project, the latest first."""
    from vault_index.journal import archive, export, projects

    if name:
        return export.markdown(archive.find(journal, name))
    chosen = projects.choose(journal, project, folder)
    some = () if chosen is None else archive.latest(journal, chosen, limit=-1)
    return "\n".join(map(export.markdown, some))


@recorded
def sessions(
    journal: Journal,
    project: str = "",
    folder: str = "",
    since: str | None = None,
    until: str = "",
    limit: int = 20,
) -> tuple[ListedSession, ...]:
    """List sessions, the latest first; times are ISO 8601, an empty one is no limit."""
    from vault_index.journal import archive, projects

    name = projects.choose(journal, project, folder)
    if name is None:
        return ()
    return tuple(map(_listed, archive.latest(journal, name, since or "", until, limit)))


@recorded
def days(journal: Journal, project: str = "") -> dict[str, int]:
    """Count the sessions of each day, `2026-11-22`, of which some are kept, by UTC."""
    from vault_index.journal import archive, projects

    return archive.days(journal, projects.choose(journal, project) or "")


@recorded
def day(
    journal: Journal, day: str, project: str = "", limit: int = 100
) -> tuple[SessionRecords, ...]:
    """Return the sessions that began on a day, by UTC, the latest first, with their summaries."""
    from vault_index.journal import archive, projects

    begins = datetime.fromisoformat(f"{day}T00:00:00+00:00")
    ends = ""
    with contextlib.suppress(OverflowError):  # the calendar ends with this day
        ends = (begins + timedelta(days=1)).isoformat()
    name = projects.choose(journal, project) or ""
    of_day = archive.latest(journal, name, begins.isoformat(), ends, limit)
    return tuple(
        _shown(session, (each for each in session.records if each.kind == SUMMARY))
        for session in of_day
    )


@recorded
def status(journal: Journal) -> JournalOverview:
    """Return the recorded folders, the kept sessions, and the failures."""
    from vault_index.journal import archive

    return archive.overview(journal)


@command
def import_transcripts(
    journal: Journal,
    caller: Caller,
    since: str | None = None,
    project: str = "",
    folder: str = "",
    dry_run: bool = False,
) -> Imported:
    """Take in the transcripts of this machine that went on since a time, and index them.

    Many are found by their words alone at first: their vectors are made in the background.
    `since` is ISO 8601, "" for all, None for the usual 30 days; only those of a project, if one is
    named or its folder.
    """
    from vault_index.journal import forget, importing, index, projects

    limit = datetime.fromisoformat(since).timestamp() if since else None if since is None else 0.0
    name = projects.name_for(journal, folder) if folder and not project else ""
    if project:
        name = projects.choose(journal, project, others=importing.project_names(journal)) or ""
    progress = None if dry_run else caller.progress_of("reading transcripts")
    imported = importing.import_all(journal, limit, name, dry_run=dry_run, progress=progress)
    if not dry_run:
        if went := forget.expire(journal).went(journal):
            caller.note(f"note: {went}")
        making = caller.progress_of("indexing the journal")
        stats = index.sync(journal, completes=False, progress=making)
        imported.seconds += stats.seconds
        imported.by_words = index.complete_later(journal, stats)
    return imported


@command
def erase(
    journal: Journal,
    caller: Caller,
    session: str = "",
    project: str = "",
    before: str = "",
    matching: str = "",
) -> Forgotten:
    """Take out what is named: see `forget.forget`."""
    from vault_index.journal import forget, projects

    del caller
    name = projects.choose(journal, project) or ""
    return forget.forget(journal, session=session, project=name, before=before, matching=matching)


def _shown(session: Session, records: Iterable[Record]) -> SessionRecords:
    return SessionRecords(_listed(session), tuple(_kept(session, each) for each in records))


def _values(source: Record | Session, kind: type) -> dict[str, Any]:
    return {each.name: getattr(source, each.name) for each in fields(kind)}


def _kept(session: Session, record: Record) -> KeptRecord:
    lines = (f"{name.replace('_', ' ')}: {text}" for name, text in record.fields.items())
    text, branch = record.text or "\n".join(lines), record.branch or session.branch
    of_session = {"session": session.id, "project": session.project, "branch": branch}
    return KeptRecord(**_values(record, Record) | of_session | {"text": text})


def _listed(session: Session) -> ListedSession:
    modified = dict.fromkeys(path for record in session.records for path in record.files_modified)
    summary = next((each for each in session.records if each.kind == SUMMARY), None)
    summary_request = summary.fields.get("request", "").partition("\n")[0] if summary else ""
    typed = next((each.title for each in session.records), "")
    request = " ".join((summary_request or typed).split())
    prompts = sum(each.origin in _ASKING for each in session.records)
    return ListedSession(
        **_values(session, SessionHead) | {"prompts": prompts},
        title=one_line(request, TITLE_CHARS),
        typed=session.prompts or sum(each.kind == PROMPT for each in session.records),
        request=request,
        files=tuple(modified),
    )


def _require(what: str, value: str, names: Sequence[str]) -> None:
    if value and value not in names:
        raise VaultError(f"no {what} {value!r:.60}", f"choose one of {', '.join(names)}")
