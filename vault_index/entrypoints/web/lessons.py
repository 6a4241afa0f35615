"""Lessons over HTTP: the routes that read and change them, and the page of one.

The disk has a change before its answer. A lesson's text needs no key: the vault's readers have it. A
withheld one needs the key, and so does its past, which may hold what was taken out. Each slow
fragment comes after the first paint.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Header, Query, Request
from fastapi.responses import HTMLResponse, JSONResponse
from pydantic import Field, ValidationError

from vault_index import api
from vault_index.api.search import SearchHealth
from vault_index.entrypoints.guard import HAS_TOKEN, NO_TOKEN, TOKEN_HINT
from vault_index.entrypoints.web.markdown import html_of
from vault_index.entrypoints.web.refusal import FIELDS_HINT, Refusal, refuse_unknown, said
from vault_index.entrypoints.web.render import fragment, page
from vault_index.entrypoints.web.shapes import (
    MAX_TEXT_CHARS,
    BulkBody,
    Id,
    IngestBody,
    QueryBody,
    Text,
    UpdateBody,
)
from vault_index.entrypoints.web.vault_client import Client, VaultClient
from vault_index.search import query as searches
from vault_index.search.hit import Hit, HitList
from vault_index.text.quote import visible

STATUSES = {"taken": 409, "refused": 422, "failed": 507}


async def one_at_a_time(client: Client) -> AsyncIterator[None]:
    """Wait for the writes before this one; a request that waits holds no thread."""
    async with client.turn:
        yield


routes = APIRouter(
    prefix="/api", tags=["writes"], dependencies=[Depends(refuse_unknown), Depends(one_at_a_time)]
)


@routes.post("/ingest")
def ingest(
    client: Client, body: IngestBody, if_none_match: Annotated[str, Header()] = ""
) -> Mapping[str, Any]:
    """Add a lesson to the vault, as a file, or change the one of this id.

    Without categories the classifier proposes some. With `If-None-Match: *` an id that is there is
    refused.
    """
    (written,) = _written(client, [body], only_new=if_none_match.strip() == "*")
    if "error" in written:
        raise Refusal(STATUSES[written["kind"]], written["error"], written["hint"])
    return _classified(client, [written])[0]


@routes.post("/ingest/bulk")
def ingest_bulk(client: Client, body: BulkBody) -> dict[str, Any]:
    """Add lessons to the vault, or change lessons by id; if one is refused, the others still get in."""
    bodies: dict[int, IngestBody] = {}
    errors: list[dict[str, Any]] = []
    for number, value in enumerate(body.lessons):
        try:
            bodies[number] = IngestBody.model_validate(value)
        except ValidationError as error:
            id = value.get("id") if isinstance(value, dict) else None
            id = id[:MAX_ID] if isinstance(id, str) else ""
            why = {"error": said(error.errors()), "hint": FIELDS_HINT}
            errors.append({"index": number, "id": id, **why})
    items = dict(zip(bodies, _written(client, bodies.values()), strict=True))
    for number, item in items.items():
        if "error" in item:
            why = {"error": item["error"], "hint": item["hint"]}
            errors.append({"index": number, "id": item["id"], **why})
    lessons = _classified(client, [item for item in items.values() if "error" not in item])
    errors.sort(key=lambda error: error["index"])
    return {"ingested": len(lessons), "errors": errors, "lessons": lessons}


@routes.put("/lessons/{id:path}")
def update(client: Client, id: str, body: UpdateBody) -> dict[str, Any]:
    """Change a lesson in its file; what the request does not name stays."""
    values = body.model_dump(exclude_none=True)
    if not values:
        fields = ", ".join(UpdateBody.model_fields)
        raise Refusal(422, "nothing is to be changed", f"send one of {fields}")
    categories = _required(client, id)
    source = values.pop("source_file", None)
    command = api.edit.update_lesson(name=id, source=source, **values)
    client.change(command, lambda changed: [changed.path])
    if body.categories is not None:
        categories = _filed(client, [id]).get(id, [])
    return {"id": id, "categories": categories, "status": "updated"}


@routes.delete("/lessons/{id:path}")
def delete(client: Client, id: str) -> dict[str, str]:
    """Delete a lesson: its file, or its section of one. Git keeps what was committed."""
    _required(client, id)
    client.change(api.edit.delete_lesson(name=id), lambda changed: [changed.path])
    return {"id": id, "status": "deleted"}


def _written(
    client: VaultClient, bodies: Iterable[IngestBody], *, only_new: bool = False
) -> list[dict[str, Any]]:
    """Write lessons; return each with its id and categories, or what is wrong with it."""
    items = [
        {"id": body.id or "", "text": body.text, "categories": body.categories or [],
         "source": body.source_file or ""}
        for body in bodies
    ]  # fmt: skip
    command = api.edit.ingest(items=items, only_new=only_new)
    written: list[dict[str, Any]] = client.change(command, lambda _: [])["items"]
    for item in written:
        for key in {"error", "hint"} & set(item):
            item[key] = client.shown_error(item[key])
    return written


def _classified(client: VaultClient, items: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return lessons that were written; those without categories have what the classifier proposes."""
    unfiled = [item["id"] for item in items if not item["categories"]]
    proposed = _filed(client, unfiled) if unfiled else {}
    return [
        {
            "id": item["id"],
            "categories": item["categories"] or proposed.get(item["id"], []),
            "status": item["status"],
        }
        for item in items
    ]


def _required(client: VaultClient, id: str) -> list[str]:
    """Return the categories of the lesson that has exactly this id. Raises Refusal without one."""
    if "\0" in id or len(id) > MAX_ID:
        raise Refusal(400, "this is not an id", "send the id of a lesson")
    categories: dict[str, list[str]] = client.ask(api.lesson.categories(ids=[id]))["categories"]
    if id not in categories:
        raise Refusal(404, "there is no lesson of this id", "send one as /api/query returned it")
    return categories[id]


def _filed(client: VaultClient, ids: list[str]) -> dict[str, list[str]]:
    answer = client.ask(api.lesson.categories(ids=ids), settled=True)
    filed: dict[str, list[str]] = answer["categories"]
    return filed


# The routes that read lessons: query, categories, courses, health.

BOTH, SESSIONS = ("lessons", "skills"), "sessions"
NO_MODEL = "none"  # full text alone answers

query_routes = APIRouter(prefix="/api", tags=["lessons"], dependencies=[Depends(refuse_unknown)])


@query_routes.get("/query")
def query_by_address(
    client: Client, request: Request, asked: Annotated[QueryBody, Query()]
) -> JSONResponse:
    """Find the lessons and skills that answer a prompt, with the fields of a search in the address."""
    return query(client, request, asked)


@query_routes.post("/query")
def query(client: Client, request: Request, body: QueryBody) -> JSONResponse:
    """Find the lessons and skills that answer a prompt and, if they are asked for, sessions."""
    began = time.perf_counter()
    named = body.collections or (BOTH if not body.document else BOTH[:1])  # of no skill
    kinds = tuple(kind for kind in named if kind != SESSIONS) or BOTH[:1]
    k = body.top_k if "top_k" in body.model_fields_set else 0
    asked = searches.Query(
        *(body.prompt, k, tuple(body.categories or ()), body.document, kinds),
        lesson=body.lesson,
        related_to=body.related_to,
        for_agent=True,
    )
    settled = bool(body.document)  # the names of documents follow a save later
    answer = client.ask(api.search.find(query=asked), status=422, settled=settled)
    least = _min_score(body, answer)
    hits: dict[str, list[dict[str, Any]]] = {kind: [] for kind in (*kinds, *named)}
    for hit in answer.hits:
        # hooks leave out what is withheld, too: a secret, or orders to the agent
        if hit.relevance >= least and not hit.withheld and is_shared(hit):
            names = {"passage": hit.text, "source_file": hit.path}
            hits[hit.kind].append({**hit.as_json(), **names})
    if SESSIONS in named:
        if not request.scope.get(HAS_TOKEN):
            raise Refusal(401, NO_TOKEN, TOKEN_HINT)
        client.require_journal()
        found = client.ask(api.journal.search(text=body.prompt, k=k, since=""), status=422)
        from vault_index.entrypoints.web.journal import without_paths

        hits[SESSIONS] = without_paths(client, found.hits)
    results: dict[str, Any] = {"results": {kind: hits[kind] for kind in named}}
    if not body.collections:
        results = hits if hits.get("skills") else {"lessons": hits["lessons"]}
    took = round(1000 * (time.perf_counter() - began), 1)
    return JSONResponse({**results, "query_time_ms": took, "model": _model(answer)})


@query_routes.get("/lessons/{id:path}")
def whole(client: Client, id: str) -> dict[str, Any]:
    """Return a whole lesson, but for those that hooks leave out."""
    _required(client, id)
    entry = client.ask(api.lesson.show(name=id), status=404)["entry"]
    if entry["withheld"]:
        raise Refusal(403, "this lesson is withheld", "open its page with the key")
    return {key: entry[key] for key in entry if key != "file_hash"} | {"source_file": entry["path"]}


@query_routes.get("/categories")
def categories(client: Client) -> dict[str, dict[str, int]]:
    """Count the lessons in and below each category."""
    return {"categories": client.ask(api.lesson.count())["counts"]}


@query_routes.get("/courses")
def courses(client: Client) -> dict[str, Any]:
    """List the documents with numbered lessons."""
    listed = client.ask(api.document.courses(), settled=True)
    shown = []
    for course in listed:
        lessons = [
            {"number": each.number, "title": each.title, "link": each.link, "id": each.id}
            for each in course.lessons
        ]
        shown.append({**asdict(course), "lesson_count": len(lessons), "lessons": lessons})
    titles = [course.title for course in listed]
    return {"total_courses": len(titles), "course_titles": titles, "courses": shown}


@query_routes.get("/health")
def health(client: Client) -> JSONResponse:
    """Say whether searching is possible; with status 503 it is not, for the `reason`."""
    state: dict[str, Any] = {"embedder": "", "tables": {}, "lesson_count": 0, "model": ""}
    state["uptime"] = round(time.monotonic() - client.began, 1)
    try:
        answer = client.ask(api.search.health())
    except Refusal as refusal:
        reason = "; ".join(filter(None, [refusal.error, refusal.hint]))
        return JSONResponse({"status": "unavailable", **state, "reason": reason}, 503)
    state |= {"embedder": answer.embedder, "tables": answer.tables}
    state |= {"lesson_count": answer.lessons, "model": _model(answer)}
    if since := answer.degraded_since:
        reason = client.shown_error(answer.text_only)
        return JSONResponse({"status": "degraded", **state, "reason": reason, "since": since})
    return JSONResponse({"status": "ok", **state})


def is_shared(hit: Hit) -> bool:
    """Whether a hit is the vault's: the user's own skills are not for whoever can ask a port."""
    return hit.kind == "lessons" or hit.type == "vault"


def _model(answer: HitList | SearchHealth) -> str:
    return NO_MODEL if answer.text_only else answer.model


def _min_score(body: QueryBody, answer: HitList) -> float:
    """Return the score below which hits are left out; full text alone scores a tenth of the rest.

    A lesson that is named by its number needs to reach none.
    """
    by_default = "min_score" not in body.model_fields_set
    needs_none = bool(answer.text_only) or body.lesson is not None
    if body.min_score is None or (by_default and needs_none):
        return float("-inf")
    return body.min_score


PUBLIC = "/page/lesson"
PRIVATE = "/page/private/lesson"
MAX_ID = 1000  # characters
MAX_PATCH = 2000  # lines
# keys of the frontmatter that the page shows in a way of their own
SHOWN_KEYS = frozenset({"title", "categories", "category", "fires_on", "silent_on"})

page_routes = APIRouter(include_in_schema=False)
LessonId = Annotated[Id, Query(min_length=1)]
FileText = Annotated[Text, Field(max_length=MAX_TEXT_CHARS)]
BodyText = Annotated[FileText, Body(embed=True)]


@page_routes.get("/lesson/{id:path}")
def lesson(client: Client, id: str) -> HTMLResponse:
    """Show the page, or the lessons with the nearest names."""
    answer = _asked(client, id)
    entry = answer["entry"]
    if entry is None:
        values = {"title": "No such lesson", "near": answer["near"]}
        return page("lesson_missing.html", at="/lessons", status=404, id=id, **values)
    if entry["withheld"]:  # the title may be what is to stay private
        values = {"parts": PRIVATE, "title": entry["id"], "body": None}
    else:
        values = {"parts": PUBLIC, "title": entry["title"], "body": True, **_body(answer)}
    return page("lesson.html", at="/lessons", id=entry["id"], **values)


@page_routes.get(f"{PUBLIC}/body")
@page_routes.get(f"{PRIVATE}/body")
def body(client: Client, request: Request, id: LessonId) -> HTMLResponse:
    """Show the lesson alone."""
    return fragment("lesson_body.html", **_body(_required_entry(client, request, id)))


@page_routes.get(f"{PUBLIC}/near")
@page_routes.get(f"{PRIVATE}/near")
def near(client: Client, request: Request, id: LessonId) -> HTMLResponse:
    """Show what it names as related, what names it, and the lessons that are most like it."""
    _required_entry(client, request, id)
    # it may be moved or deleted meanwhile
    links = client.ask(api.lesson.related(id=id, both=True), status=404)["related"]
    lessons = client.ask(api.lesson.nearest(id=id), status=404)["lessons"]
    return fragment("lesson_near.html", links=links, lessons=lessons)


@page_routes.get(f"{PUBLIC}/prompts")
@page_routes.get(f"{PRIVATE}/prompts")
def prompts(client: Client, request: Request, id: LessonId) -> HTMLResponse:
    """Show its own prompts, and whether each passes."""
    _required_entry(client, request, id)
    return fragment("lesson_prompts.html", **client.ask(api.lesson.prompts(id=id), status=404))


@page_routes.get(f"{PRIVATE}/past")
def past(client: Client, id: LessonId) -> HTMLResponse:
    """Show how often agents got it, and the commits that changed it."""
    used = client.ask(api.lesson.tally(id=id))
    answer = client.ask(api.lesson.history(id=id), status=404)
    return fragment("lesson_past.html", id=id, **used, **answer)


@page_routes.get(f"{PRIVATE}/patch")
def patch(client: Client, id: LessonId, commit: Annotated[Id, Query()]) -> HTMLResponse:
    """Show what a commit changed."""
    text: str = client.ask(api.lesson.diff(id=id, commit=commit), status=404)["patch"]
    lines = text.split("\n")
    first = next((number for number, line in enumerate(lines) if line.startswith("@@")), len(lines))
    changed = [visible(line) for line in lines[first:] if line]
    left_out = max(0, len(changed) - MAX_PATCH)
    return fragment("diff.html", lines=changed[:MAX_PATCH], left_out=left_out)


def _asked(client: VaultClient, id: str) -> Mapping[str, Any]:
    if not id.isprintable() or not id.strip() or len(id) > MAX_ID:
        return {"entry": None, "near": []}
    return client.ask(api.lesson.page(name=id), status=404)


def _required_entry(client: VaultClient, request: Request, id: str) -> Mapping[str, Any]:
    """Return a lesson for a fragment; a withheld one only for a private one. Raises Refusal."""
    answer = _asked(client, id)
    entry = answer["entry"]
    if entry is None:
        raise Refusal(404, "there is no such lesson any more", "search for it")
    if entry["withheld"] and not request.url.path.startswith(f"{PRIVATE}/"):
        raise Refusal(403, "this lesson is withheld", "open the page with its key")
    return answer


def _body(answer: Mapping[str, Any]) -> dict[str, Any]:
    entry, of_file = answer["entry"], answer["of_file"]
    ids = [other["id"] for other in of_file]
    at = ids.index(entry["id"]) if entry["id"] in ids else 0
    keys = [(key, words) for key, words in answer["metadata"] if key not in SHOWN_KEYS and words]
    return {
        "entry": entry,
        "text": html_of(entry["text"], entry["path"]),
        "keys": keys,
        "of_file": of_file if len(of_file) > 1 else [],
        "before": of_file[at - 1] if at else None,
        "after": of_file[at + 1] if at + 1 < len(of_file) else None,
    }
