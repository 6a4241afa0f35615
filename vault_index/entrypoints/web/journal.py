"""The journal over HTTP: its routes, and its page, for whoever has the token or the page's key.

Only its user may read its files. Paths of this machine are left out: of a session its folder and files,
of a file in another place all but its name. The page is behind Activity, and its address holds what it
shows: a day's work, a session's records, or what a search finds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from datetime import date
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query
from fastapi.responses import HTMLResponse

from vault_index import api
from vault_index.entrypoints.web.fields import Text, Word, answer_form, many, shown_as
from vault_index.entrypoints.web.refusal import Refusal, refuse_unknown
from vault_index.entrypoints.web.render import address_with, fragment, page
from vault_index.entrypoints.web.vault_client import Client, VaultClient
from vault_index.entrypoints.wording import journal as words
from vault_index.hotpath import spool
from vault_index.journal.record import (
    IN_JSON,
    Around,
    JournalHit,
    JournalHits,
    KeptRecord,
    ListedSession,
)
from vault_index.store import times
from vault_index.store.delivery import key_of
from vault_index.store.times import lasted

PREFIX = "/api/journal"
PATHS = frozenset({"folder", "transcript", "path", "uuids"})

Kind = Literal["prompt", "observation", "summary"]


def narrowed(
    project: Word = "", file: Word = "", concept: Word = "", type: Word = "", since: Word = "",
    until: Word = "",
) -> dict[str, str]:  # fmt: skip
    """Return the limits of a search, by the parameters of the request."""
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
_OF_WHOLE = {each.name for each in fields(KeptRecord)} - {*IN_JSON, *PATHS}  # with format=full
RECORD = shown_as(
    JournalHit,
    PATHS | {"cosine", "full_text", "is_whole"},
    by_words=(bool, ...),
    **dict.fromkeys(_OF_WHOLE, (Any, None)),
)
FOUND = shown_as(JournalHits, ("embedder", "missing"), hits=(many(RECORD), ...))
AROUND = shown_as(Around, ("missing",), records=(many(RECORD), ...))
LISTED = answer_form("Sessions", sessions=(many(shown_as(ListedSession, PATHS)), ...))


@routes.get("/search", response_model=FOUND, response_model_exclude_unset=True)
def search(
    client: Client,
    narrowed: Narrowed,
    query: Word = "",
    limit: Annotated[int, Query(ge=1, le=100)] = 5,
    kind: Annotated[list[Kind] | None, Query()] = None,
) -> Any:
    """Find prompts, observations and summaries: by meaning, file, concept, type, time."""
    # a project or a time alone is no search
    if not (query.strip() or narrowed["file"] or narrowed["concept"] or narrowed["type"]):
        raise Refusal(422, "there is nothing to search for", "send query, file, concept or type")
    answer = _search(client, query, kind or [], limit, narrowed)
    return {
        "hits": without_paths(client, answer.hits),
        "older": answer.older,
        "project": client.shown(answer.project),
        "text_only": client.shown(answer.text_only),
    }


@routes.get("/timeline", response_model=AROUND, response_model_exclude_unset=True)
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


@routes.get("/sessions", response_model=LISTED)
def sessions(
    client: Client,
    project: Word = "",
    since: Word = "",
    until: Word = "",
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
) -> Any:
    """List the sessions, the latest first."""
    with client.refusing(422):
        window = times.window(since or None, until)
    question = api.journal.sessions(project=project, limit=limit, **window)
    return {"sessions": client.shown_values(client.ask(question, status=422), exclude=PATHS)}


def _search(
    client: VaultClient, query: str, kinds: list[Kind], limit: int, narrowed: Mapping[str, str]
) -> JournalHits:
    with client.refusing(422):
        window = times.window(narrowed["since"] or None, narrowed["until"])
    values: dict[str, Any] = {**narrowed, **window}
    return client.ask(api.journal.search(text=query, kinds=kinds, k=limit, **values), status=422)


def without_paths(client: VaultClient, hits: Iterable[JournalHit]) -> Any:
    """Return hits as JSON values, without the folders of this machine."""
    return client.shown_values([hit.as_json() for hit in hits], exclude=PATHS)


AT = "/activity/sessions"
PRIVATE = "/page/private/journal"
HITS = 50
SESSIONS = 100  # of a day
MAX_CHARS = 20_000  # of a text; what follows is on the command line
FIELDS = ("text", "facts", "concepts", "files_read", "files_modified", "errors", "commands")

Day = Annotated[str, Query(pattern=r"^(\d{4}-\d\d-\d\d)?$")]

private = APIRouter(
    prefix=PRIVATE, include_in_schema=False, dependencies=[Depends(require_journal)]
)
page_routes = APIRouter(include_in_schema=False)


@page_routes.get(AT)
def journal(
    query: Word = "", file: Word = "", day: Day = "", project: Word = "", session: Word = ""
) -> HTMLResponse:
    """Show the page: a session, what a search finds, or a day."""
    if session:
        contents = address_with(f"{PRIVATE}/session", id=session)
    elif query or file:
        contents = address_with(f"{PRIVATE}/search", query=query, file=file)
    else:
        contents = address_with(f"{PRIVATE}/day", day=day, project=project)
    values: dict[str, Any] = {"query": query, "file": file, "day": day, "contents": contents}
    return page("journal.html", at="/activity", title="Sessions", **values)


@page_routes.get(f"{PRIVATE}/day")
def day_page(client: Client, day: Day = "", project: Word = "") -> HTMLResponse:
    """Show the sessions of a day, by default of the latest that has some."""
    if not spool.is_on():
        return fragment("journal_day.html", is_off=True)
    counts = client.ask(api.journal.days(project=project), status=422)
    day = _day(day) or max((each for each in counts if each[:4] != "0000"), default="")
    if not day:
        return fragment("journal_day.html", is_off=False, day="", project=project)
    of_day = client.ask(api.journal.day(day=day, project=project, limit=SESSIONS), status=422)
    return fragment(
        "journal_day.html",
        is_off=False,
        day=day,
        name=times.day_named(day),
        before=max((each for each in counts if each < day), default=""),
        after=min((each for each in counts if each > day), default=""),
        project=project,
        sessions=[_session(client, each.session, each.records) for each in of_day],
        count=counts.get(day, 0),
    )


@private.get("/session")
def session_page(client: Client, id: Word) -> HTMLResponse:
    """Show a session with its records in their order."""
    answer = client.ask(api.journal.show(name=id), status=404)
    records = [_record(client, each) for each in answer.records]
    session = _session(client, answer.session)
    return fragment("journal_session.html", session=session, records=records)


@private.get("/search")
def hits(client: Client, query: Word = "", file: Word = "") -> HTMLResponse:
    """Show the records that a search finds, of all times."""
    limits = narrowed(file=file, since="all")
    answer = _search(client, query, [], HITS, limits) if query or file else JournalHits()
    found = [_record(client, each) for each in answer.hits]
    return fragment("journal_hits.html", hits=found, text_only=answer.text_only)


page_routes.include_router(private)


def _day(text: str) -> str:
    try:
        return date.fromisoformat(text).isoformat() if text else ""
    except ValueError:
        raise Refusal(422, f"no day {text}", "write it like 2026-03-31") from None


def _session(
    client: VaultClient, session: ListedSession, summaries: Iterable[KeptRecord] = ()
) -> dict[str, Any]:
    return {
        **client.shown_values(session, exclude=PATHS),
        "lasted": lasted(session.began, session.ended),
        "summary": [client.shown_values(each.fields, exclude=PATHS) for each in summaries],
    }


def _record(client: VaultClient, record: KeptRecord) -> dict[str, Any]:
    empty = dict.fromkeys(FIELDS, ())
    values = {**empty, **client.shown_values(record, exclude=PATHS)}
    text = str(values["text"] or "")
    return {
        **values,
        "text": text[:MAX_CHARS],
        "rest": max(0, len(text) - MAX_CHARS),
        "label": words.kind(record),
        "key": key_of(record.text) if record.kind == "prompt" else "",
    }
