"""The journal over HTTP: its routes, and its page, for whoever has the token or the page's key.

Only its user may read its files. Paths of this machine are left out: of a session its folder and files,
of a file in another place all but its name. The address of the page holds what it shows: the last
weeks, a day's work, a session's records, or what a search finds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from itertools import groupby
from operator import itemgetter
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query
from fastapi.responses import HTMLResponse

from vault_index import api
from vault_index.entrypoints.web.refusal import Refusal, refuse_unknown
from vault_index.entrypoints.web.render import HEADERS, address_with, fragment, page
from vault_index.entrypoints.web.shapes import Text, Word
from vault_index.entrypoints.web.vault_client import Client, VaultClient
from vault_index.entrypoints.words import journal as words
from vault_index.hotpath import spool
from vault_index.journal.record import (
    CONCEPTS,
    KINDS,
    TYPES,
    JournalHit,
    JournalHits,
    KeptRecord,
    SessionHead,
)
from vault_index.store import moments
from vault_index.store.injections import key_of
from vault_index.store.moments import lasted, local

PREFIX = "/api/journal"
PATHS = frozenset({"folder", "transcript", "path", "uuids"})

Kind = Literal["prompt", "observation", "summary"]


def narrowed(
    project: Word = "", file: Word = "", concept: Word = "", type: Word = "", since: Word = "",
    until: Word = "",
) -> dict[str, str]:  # fmt: skip
    """Return how a search is narrowed, by the parameters of the request."""
    values = {"project": project, "file": file, "concept": concept, "type": type}
    return {**values, "since": since, "until": until}


Narrowed = Annotated[dict[str, str], Depends(narrowed)]


async def require_journal(client: Client) -> None:
    client.require_journal()


routes = APIRouter(
    prefix=PREFIX,
    tags=["journal"],
    dependencies=[Depends(refuse_unknown), Depends(require_journal)],
)


@routes.get("/search")
def search(
    client: Client,
    narrowed: Narrowed,
    query: Word = "",
    limit: Annotated[int, Query(ge=1, le=100)] = 5,
    kind: Annotated[list[Kind] | None, Query()] = None,
) -> Any:
    """Find prompts, observations and summaries: by meaning, file, concept, type, time."""
    if not is_search(query, narrowed):
        raise Refusal(422, "there is nothing to search for", "send query, file, concept or type")
    answer = _search(client, query, kind or [], limit, narrowed)
    return {
        "hits": without_paths(client, answer.hits),
        "older": answer.older,
        "project": client.shown(answer.project),
        "text_only": client.shown(answer.text_only),
    }


@routes.get("/timeline")
def timeline(
    client: Client,
    anchor: Annotated[Text, Query(min_length=1, max_length=1000)],
    depth_before: Annotated[int, Query(ge=0, le=50)] = 10,
    depth_after: Annotated[int, Query(ge=0, le=50)] = 10,
    format: Literal["index", "full"] = "index",
    project: Word = "",
) -> Any:
    """Show the records around an anchor: an id, a session, a time or a query."""
    values: dict[str, Any] = {"full": format == "full", "project": project}
    question = api.journal.timeline(anchor=anchor, before=depth_before, after=depth_after, **values)
    answer = client.ask(question, status=404)
    records = without_paths(client, answer.records)
    return {"records": records, "anchor": answer.anchor, "before": answer.before}


@routes.get("/sessions")
def sessions(
    client: Client,
    project: Word = "",
    since: Word = "",
    until: Word = "",
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
) -> Any:
    """List the sessions, the latest first."""
    with client.refusing(422):
        window = moments.window(since or None, until)
    question = api.journal.sessions(project=project, limit=limit, **window)
    return {"sessions": client.shown_values(client.ask(question, status=422), exclude=PATHS)}


def _search(
    client: VaultClient, query: str, kinds: list[Kind], limit: int, narrowed: Mapping[str, str]
) -> JournalHits:
    with client.refusing(422):
        window = moments.window(narrowed["since"] or None, narrowed["until"])
    values: dict[str, Any] = {**narrowed, **window}
    return client.ask(api.journal.search(text=query, kinds=kinds, k=limit, **values), status=422)


def is_search(query: str, narrowed: Mapping[str, str]) -> bool:
    """Whether there is something to search for; a project or a time alone is not."""
    return bool(query.strip() or narrowed["file"] or narrowed["concept"] or narrowed["type"])


def without_paths(client: VaultClient, hits: Iterable[JournalHit]) -> Any:
    """Return hits as JSON values, without the folders of this machine."""
    return client.shown_values([hit.as_json() for hit in hits], exclude=PATHS)


# The page.

AT = "/journal"
PRIVATE = "/page/private/journal"
HITS, MAX_HITS = 20, 100
AROUND = 12  # records before and after a moment
SESSIONS = 100  # of a day
MAX_CHARS = 20_000  # of a text; what follows is on the command line
FOLDED_CHARS = 600
FIELDS = ("text", "facts", "concepts", "files_read", "files_modified", "errors", "commands")

Day = Annotated[str, Query(pattern=r"^(\d{4}-\d\d-\d\d)?$")]

private = APIRouter(
    prefix=PRIVATE, include_in_schema=False, dependencies=[Depends(require_journal)]
)
page_routes = APIRouter(include_in_schema=False)


@page_routes.get(AT)
def journal(
    narrowed: Narrowed,
    query: Word = "",
    kind: str = "",
    day: Day = "",
    session: Word = "",
    around: Word = "",
) -> HTMLResponse:
    """Show the page: a session, a moment, what a search finds, or a day."""
    filters: dict[str, Any] = {"kind": kind, **narrowed}
    project = narrowed["project"]
    if session:
        contents = address_with(f"{PRIVATE}/session", id=session)
    elif around:
        contents = address_with(f"{PRIVATE}/around", anchor=around)
    elif query or any(filters[name] for name in filters if name != "project"):
        contents = address_with(f"{PRIVATE}/search", query=query, **filters)
    else:
        contents = address_with(f"{PRIVATE}/day", day=day, project=project)
    return page(
        "journal.html",
        at=AT,
        title="Journal",
        query=query,
        **filters,
        is_narrowed=any(filters.values()),
        kinds=KINDS,
        types=TYPES,
        concepts=CONCEPTS,
        calendar=address_with(f"{PRIVATE}/days", day=day, project=project),
        contents=contents,
    )


@page_routes.get(f"{PRIVATE}/days")
def calendar(client: Client, day: Day = "", project: Word = "") -> HTMLResponse:
    """Show the last weeks, nothing without a journal."""
    if not spool.is_on():
        return HTMLResponse("", headers=HEADERS)
    counts = client.ask(api.journal.days(project=project), status=422)
    today = max(datetime.now(UTC).date(), datetime.now().astimezone().date())
    drawn = days_drawn(counts, _day(day), today)
    return fragment("journal_days.html", calendar=drawn, chosen=day, project=project)


@page_routes.get(f"{PRIVATE}/day")
def day_page(client: Client, day: Day = "", project: Word = "") -> HTMLResponse:
    """Show the sessions of a day, by default of the latest that has some."""
    if not spool.is_on():
        return fragment("journal_off.html")
    counts = client.ask(api.journal.days(project=project), status=422)
    day = _day(day) or max((each for each in counts if each[:4] != "0000"), default="")
    if not day:
        return fragment("journal_day.html", day="", project=project)
    of_day = client.ask(api.journal.day(day=day, project=project, limit=SESSIONS), status=422)
    sessions = [_session(client, each.session, each.records) for each in of_day]
    return fragment(
        "journal_day.html",
        day=day,
        name=day_named(day),
        before=max((each for each in counts if each < day), default=""),
        after=min((each for each in counts if each > day), default=""),
        project=project,
        sessions=sessions,
        count=counts.get(day, 0),
        prompts=sum(each["typed"] for each in sessions),
        files=len({(each["project"], file) for each in sessions for file in each["files"]}),
        projects=sorted({each["project"] for each in sessions}),
    )


@private.get("/session")
def session_page(client: Client, id: Word) -> HTMLResponse:
    """Show a session with its records in their order."""
    answer = client.ask(api.journal.show(name=id), status=404)
    records = [_record(client, each) for each in answer.records]
    session = _session(client, answer.session)
    return fragment("journal_session.html", session=session, records=records)


@private.get("/around")
def around_page(client: Client, anchor: Word) -> HTMLResponse:
    """Show what came before and after a record, a session's beginning or a time."""
    question = api.journal.timeline(anchor=anchor, before=AROUND, after=AROUND, full=True)
    answer = client.ask(question, status=404)
    records = [_record(client, each.whole or each) for each in answer.records]
    return fragment(
        "journal_around.html",
        anchor=answer.anchor,
        # a session that goes on later comes twice
        groups=[list(group) for _, group in groupby(records, key=itemgetter("session"))],
        earlier=records[0]["id"] if records else "",
        later=records[-1]["id"] if records else "",
    )


@private.get("/search")
def hits(
    client: Client,
    narrowed: Narrowed,
    query: Word = "",
    kind: Kind | None = None,
    limit: Annotated[int, Query(ge=1, le=MAX_HITS)] = HITS,
) -> HTMLResponse:
    """Show the records that a search finds."""
    is_asked, answer = is_search(query, narrowed), JournalHits()
    if is_asked:
        answer = _search(client, query, [kind] if kind else [], limit, narrowed)
    hits = [_record(client, each) for each in answer.hits]
    named = {"query": query, "kind": kind, **narrowed}
    following = min(limit + HITS, MAX_HITS)
    has_more = len(hits) == limit < MAX_HITS
    return fragment(
        "journal_hits.html",
        is_asked=is_asked,
        hits=hits,
        older=answer.older,
        everything=address_with(AT, **{**named, "since": "all"}),
        text_only=answer.text_only,
        more=address_with(f"{PRIVATE}/search", **named, limit=following) if has_more else "",
    )


page_routes.include_router(private)


def _day(text: str) -> str:
    try:
        return date.fromisoformat(text).isoformat() if text else ""
    except ValueError:
        raise Refusal(422, f"no day {text}", "write it like 2026-03-31") from None


def _session(
    client: VaultClient, session: SessionHead, summaries: Iterable[KeptRecord] = ()
) -> dict[str, Any]:
    return {
        **client.shown_values(session, exclude=PATHS),
        "began": local(session.began),
        "until": local(session.ended, "%H:%M"),
        "lasted": lasted(session.began, session.ended),
        "summary": [client.shown_values(each.fields, exclude=PATHS) for each in summaries],
    }


def _record(client: VaultClient, record: words.AnyRecord) -> dict[str, Any]:
    empty = dict.fromkeys(FIELDS, ())
    values = {**empty, **client.shown_values(record, exclude=PATHS)}
    text = str(values["text"] or "")
    return {
        **values,
        "text": text[:MAX_CHARS],
        "rest": max(0, len(text) - MAX_CHARS),
        "is_long": len(text) > FOLDED_CHARS,
        "label": words.kind(record),
        "when": local(record.at),
        "key": key_of(record.text) if record.kind == "prompt" else "",
    }


WEEKS = 12
LEVELS = 4  # of colour; the number is in the cell, too


def days_drawn(counts: Mapping[str, int], chosen: str, today: date) -> dict[str, Any]:
    """Return the days of the last weeks in columns of a week each, Monday first.

    The weeks end with that of the `chosen` day where it is older than they are.
    """
    end = today
    if chosen and date.fromisoformat(chosen) < today - timedelta(weeks=WEEKS - 1):
        end = max(date.fromisoformat(chosen), date.min + timedelta(weeks=WEEKS - 1))
    monday = end - timedelta(days=end.weekday(), weeks=WEEKS - 1)
    shown = [monday + timedelta(days=number) for number in range(7 * WEEKS)]
    most = max((counts.get(day.isoformat(), 0) for day in shown), default=0)
    cells = [
        {
            "day": day.isoformat(),
            "name": day_named(day.isoformat()),
            "count": (count := counts.get(day.isoformat(), 0)),
            "level": -(-LEVELS * count // most) if most else 0,
        }
        for day in shown
        if day <= today
    ]
    return {
        "cells": cells,
        "months": [f"{day:%b}" if day.day <= 7 else "" for day in shown[::7]],
        "sessions": sum(cell["count"] for cell in cells),
        "days": sum(bool(cell["count"]) for cell in cells),
    }


def day_named(day: str) -> str:
    """Return a day for people: `Sunday 22 November 2026`; any other text as it is."""
    try:
        moment = date.fromisoformat(day)
    except ValueError:
        return day
    return f"{moment:%A} {moment.day} {moment:%B %Y}"
