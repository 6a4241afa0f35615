"""Lessons over HTTP: the routes that read and change them, and the page of one.

The disk has a change before its answer. A lesson's text needs no key: the vault's readers have it. A
withheld one needs the key, and so does its past, which may hold what was taken out. Each slow
fragment comes after the first paint.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi import Body as InBody
from fastapi.responses import HTMLResponse, JSONResponse
from pydantic import Field, ValidationError

from vault_index import api
from vault_index.api import codec
from vault_index.api.lesson import MAX_EDITS, Page
from vault_index.edit.update import Put, SentText
from vault_index.entrypoints.guard import HAS_TOKEN, NO_TOKEN, TOKEN_HINT
from vault_index.entrypoints.web.fields import (
    MAX_CATEGORIES,
    MAX_PROMPT_CHARS,
    MAX_TEXT_CHARS,
    Body,
    Categories,
    Document,
    Id,
    LessonNumber,
    LessonText,
    Said,
    Text,
    answer_form,
    many,
    shown_as,
)
from vault_index.entrypoints.web.markdown import html_of
from vault_index.entrypoints.web.refusal import (
    FIELDS_HINT,
    Refusal,
    from_error,
    refuse_unknown,
    said,
)
from vault_index.entrypoints.web.render import fragment, page
from vault_index.entrypoints.web.vault_client import Client, VaultClient
from vault_index.lesson.parse import TYPES
from vault_index.retrieval import hit as searches
from vault_index.retrieval.documents import Course
from vault_index.retrieval.hit import NOT_IN_JSON, Hit, HitList, WholeEntry


async def one_at_a_time(client: Client) -> AsyncIterator[None]:
    """Wait for the writes before this one; a request that waits holds no thread."""
    async with client.turn:
        yield


routes = APIRouter(
    prefix="/api",
    tags=["writes"],
    dependencies=[Depends(refuse_unknown), Depends(one_at_a_time)],
)
MAX_BULK = 1000  # lessons of a request


Type = Literal[TYPES]  # type: ignore[valid-type]  # mypy reads no values of a variable


class IngestBody(Body):
    """A lesson to be, or new content of the one that has this id.

    Without an id its title makes one; `source_file` is noted and never read.
    """

    id: Id | None = None
    text: LessonText
    categories: Categories | None = None
    source_file: Id | None = None


class BulkBody(Body):
    """Lessons to be: each is taken or refused by itself, also for what its fields hold."""

    lessons: Annotated[list[IngestBody | Any], Field(max_length=MAX_BULK)]


class UpdateBody(Body):
    """Changes of a lesson. Absent fields stay as they are; an empty list takes out what there is.

    A title that was made from the text is made again with a new text.
    """

    text: LessonText | None = None
    title: Annotated[Said, Field(max_length=500)] | None = None
    categories: Categories | None = None
    tags: Annotated[list[Id], Field(max_length=MAX_CATEGORIES)] | None = None
    type: Type | None = None
    source_file: Id | None = None


@dataclass(frozen=True, slots=True)
class Written:
    """A lesson as it was written: ingested, or updated; categories may be proposed."""

    id: str
    categories: Sequence[str]
    status: str


@routes.post("/ingest")
def ingest(
    client: Client, body: IngestBody, if_none_match: Annotated[str, Header()] = ""
) -> Written:
    """Add a lesson to the vault, as a file, or change the one of this id.

    Without categories the classifier proposes some. With `If-None-Match: *` an id that is there is
    refused.
    """
    (put,) = _put(client, [body], only_new=if_none_match.strip() == "*")
    if put.error:
        raise from_error(put.error, 422, client.shown_error)
    return _classified(client, [put])[0]


@dataclass(frozen=True, slots=True)
class Refused:
    """A lesson of many that is refused, by its number among them."""

    index: int
    id: str
    error: str
    hint: str


@dataclass(frozen=True, slots=True)
class Ingested:
    """The lessons of many that were written, and the errors with the others."""

    ingested: int
    errors: Sequence[Refused]
    lessons: Sequence[Written]


@routes.post("/ingest/bulk")
def ingest_bulk(client: Client, body: BulkBody) -> Ingested:
    """Add lessons to the vault, or change lessons by id; if one is refused, the others still get in."""
    bodies: dict[int, IngestBody] = {}
    errors: list[Refused] = []
    for number, value in enumerate(body.lessons):
        try:
            bodies[number] = IngestBody.model_validate(value)
        except ValidationError as error:
            id = value.get("id") if isinstance(value, dict) else None
            id = id[:MAX_ID] if isinstance(id, str) else ""
            errors.append(Refused(number, id, said(error.errors()), FIELDS_HINT))
    results = _put(client, bodies.values())
    for number, put in zip(bodies, results, strict=True):
        if put.error:
            refusal = from_error(put.error, 422, client.shown_error)
            errors.append(Refused(number, put.id, refusal.error, refusal.hint))
    lessons = _classified(client, [put for put in results if not put.error])
    errors.sort(key=lambda error: error.index)
    return Ingested(len(lessons), errors, lessons)


@routes.put("/lessons/{id:path}")
def update(client: Client, id: str, body: UpdateBody) -> Written:
    """Change a lesson in its file; what the request does not name stays."""
    values = body.model_dump(exclude_none=True)
    if not values:
        fields = ", ".join(UpdateBody.model_fields)
        raise Refusal(422, "nothing is to be changed", f"send one of {fields}")
    categories = _required(client, id)
    source = values.pop("source_file", None)
    client.change(api.edit.update_lesson(name=id, source=source, **values))
    if body.categories is not None:
        categories = _filed(client, [id]).get(id, [])
    return Written(id, categories, "updated")


@dataclass(frozen=True, slots=True)
class Deleted:
    """A lesson that was deleted."""

    id: str
    status: Literal["deleted"] = "deleted"


@routes.delete("/lessons/{id:path}")
def delete(client: Client, id: str) -> Deleted:
    """Delete a lesson: its file, or its section of one. Git keeps what was committed."""
    _required(client, id)
    client.change(api.edit.delete_lesson(name=id))
    return Deleted(id)


def _put(client: VaultClient, bodies: Iterable[IngestBody], *, only_new: bool = False) -> list[Put]:
    items = [
        SentText(body.text, body.id or "", body.categories or (), body.source_file or "")
        for body in bodies
    ]
    return client.change(api.edit.ingest(items=items, only_new=only_new))[0]


def _classified(client: VaultClient, results: Sequence[Put]) -> list[Written]:
    """Return lessons that were written; those without categories have what the classifier proposes."""
    unfiled = [put.id for put in results if not put.categories]
    proposed = _filed(client, unfiled) if unfiled else {}
    return [
        Written(put.id, put.categories or proposed.get(put.id, []), put.status) for put in results
    ]


def _required(client: VaultClient, id: str) -> list[str]:
    """Return the categories of the lesson that has exactly this id. Raises Refusal without one."""
    if "\0" in id or len(id) > MAX_ID:
        raise Refusal(400, "this is not an id", "send the id of a lesson")
    categories = client.ask(api.lesson.categories(ids=[id]))
    if id not in categories:
        raise Refusal(404, "there is no lesson of this id", "send one as /api/query returned it")
    return categories[id]


def _filed(client: VaultClient, ids: list[str]) -> Mapping[str, list[str]]:
    return client.ask(api.lesson.categories(ids=ids), settled=True)


BOTH, SESSIONS = ("lessons", "skills"), "sessions"
NO_MODEL = "none"  # full text alone answers

query_routes = APIRouter(
    prefix="/api",
    tags=["lessons"],
    dependencies=[Depends(refuse_unknown)],
)
Collection = Literal["lessons", "skills", "sessions"]


class QueryBody(Body):
    """A search. With `collections` the answer is `{"results": {...}}`; `sessions` need the token.

    `document` narrows it to one, by a name that may be half remembered, and `lesson` to a number in it;
    `related_to` to the lessons that one names as related, or that name it.
    Without `top_k` the settings' `[search] hits` count, if there are any.
    """

    prompt: Annotated[Said, Field(max_length=MAX_PROMPT_CHARS)]
    top_k: Annotated[int, Field(ge=1, le=100)] = 5
    categories: Categories | None = None
    document: Document = ""
    lesson: LessonNumber | None = None
    related_to: Id = ""
    min_score: Annotated[float, Field(allow_inf_nan=False)] | None = 0.4
    collections: Annotated[list[Collection], Field(min_length=1, max_length=3)] | None = None


HIT = shown_as(
    Hit,
    NOT_IN_JSON,
    id=(str, ...),
    sum=(float, ...),
    by_words=(bool, ...),
    trigger=(str, ""),
    changed=(str, ""),
    weighted=(list[float], []),
    passage=(str, ...),
    source_file=(str, ...),
)
_SPENT: Any = {
    "query_time_ms": (float, ...),
    "model": (str, ...),
    "without_quotes": (list[str], []),  # phrases that no lesson has all of
}
FOUND = answer_form("Found", lessons=(many(HIT), ...), skills=(many(HIT), []), **_SPENT)
FOUND_IN = answer_form("FoundIn", results=(dict[Collection, list[Any]], ...), **_SPENT)


@query_routes.get("/query", response_model=FOUND | FOUND_IN)
def query_by_address(
    client: Client, request: Request, asked: Annotated[QueryBody, Query()]
) -> JSONResponse:
    """Find the lessons and skills that answer a prompt, with the fields of a search in the address."""
    return query(client, request, asked)


@query_routes.post("/query", response_model=FOUND | FOUND_IN)
def query(client: Client, request: Request, body: QueryBody) -> JSONResponse:
    """Find the lessons and skills that answer a prompt and, if they are asked for, sessions."""
    began = time.perf_counter()
    named = body.collections or (BOTH if not body.document else BOTH[:1])  # of no skill
    kinds = tuple(kind for kind in named if kind != SESSIONS) or BOTH[:1]
    k = body.top_k if "top_k" in body.model_fields_set else 0
    wanted = searches.Query(
        text=body.prompt,
        k=k,
        categories=tuple(body.categories or ()),
        within=body.document,
        kinds=kinds,
        lesson=body.lesson,
        related_to=body.related_to,
        for_agent=True,
    )
    settled = bool(body.document)  # the names of documents follow a save later
    answer = client.ask(api.search.find(query=wanted), status=422, settled=settled)
    least = _min_score(body, answer)
    hits: dict[str, list[dict[str, Any]]] = {kind: [] for kind in (*kinds, *named)}
    lessons = sorted({hit.path for hit in answer.hits if hit.kind == "lessons"})
    sources: Mapping[str, str] = {}
    with suppress(Refusal):  # a published index has no files
        sources = client.ask(api.lesson.sources(paths=lessons)) if lessons else {}
    for hit in answer.hits:
        # hooks leave out what is withheld, too: a secret, or orders to the agent
        if hit.shown_score >= least and not hit.withheld and is_shared(hit):
            names = {"passage": hit.text, "source_file": sources.get(hit.lesson_id, hit.path)}
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
    more = {"without_quotes": answer.unquoted} if answer.unquoted else {}
    return JSONResponse({**results, "query_time_ms": took, "model": _model(answer), **more})


LESSON = shown_as(WholeEntry, ("file_hash",), source_file=(str, ...))


@query_routes.get("/lessons/{id:path}", response_model=LESSON)
def whole(client: Client, id: str) -> dict[str, Any]:
    """Return a whole lesson, but for those that hooks leave out."""
    _required(client, id)
    entry = client.ask(api.lesson.show(name=id), status=404)
    if entry.withheld:
        raise Refusal(403, "this lesson is withheld", "open its page with the key")
    sources = client.ask(api.lesson.sources(paths=[entry.path]))
    values = codec.to_json(entry) | {"source_file": sources.get(entry.id, entry.path)}
    return {name: values[name] for name in LESSON.model_fields}


@query_routes.get("/categories")
def categories(client: Client) -> dict[str, Mapping[str, int]]:
    """Count the lessons in and below each category."""
    return {"categories": client.ask(api.lesson.count()).counts}


@dataclass(frozen=True, slots=True)
class Courses:
    """The documents with numbered lessons, by title."""

    total_courses: int
    course_titles: list[str]
    courses: Sequence[Course]


@query_routes.get("/courses")
def courses(client: Client) -> Courses:
    """List the documents with numbered lessons."""
    listed = client.ask(api.document.courses(), settled=True)
    return Courses(len(listed), [course.title for course in listed], listed)


@dataclass(frozen=True, slots=True)
class Health:
    """Whether searching is possible, and for which `reason` it is not, or `since` when by words alone.

    It is completing while so many files are `lacking` their vectors that words alone are searched.
    """

    status: Literal["ok", "completing", "degraded", "unavailable"]
    embedder: str
    tables: Mapping[str, int]
    lesson_count: int
    model: str
    uptime: float
    reason: str = ""
    since: str = ""
    lacking: int = 0


@query_routes.get("/health", response_model=Health)
def health(client: Client) -> Health | JSONResponse:
    """Say whether searching is possible; with status 503 it is not, for the `reason`."""
    uptime = round(time.monotonic() - client.began, 1)
    try:
        answer = client.ask(api.search.health())
    except Refusal as refusal:
        reason = "; ".join(filter(None, [refusal.error, refusal.hint]))
        return JSONResponse(asdict(Health("unavailable", "", {}, 0, "", uptime, reason)), 503)
    since, searched = answer.degraded_since, answer.searched
    is_completing = bool(answer.lacking and searched.text_only and not since)
    return Health(
        "degraded" if since else "completing" if is_completing else "ok",
        answer.searched.embedder,
        answer.tables,
        answer.lessons,
        _model(answer.searched),
        uptime,
        reason=client.shown_error(searched.text_only) if since or is_completing else "",
        since=since,
        lacking=answer.lacking,
    )


def is_shared(hit: Hit) -> bool:
    """Whether a hit is the vault's: the user's own skills are not for whoever can ask a port."""
    return hit.kind == "lessons" or hit.type == "vault"


def _model(answer: HitList) -> str:
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
RELATED = 0.3  # likeness from which a lesson is shown as related
# keys of the frontmatter that the page shows in a way of their own
SHOWN_KEYS = frozenset({"title", "categories", "category", "fires_on", "silent_on"})

page_routes = APIRouter(include_in_schema=False)
LessonId = Annotated[Id, Query(min_length=1)]
FileText = Annotated[Text, Field(max_length=MAX_TEXT_CHARS)]
BodyText = Annotated[FileText, InBody(embed=True)]


@page_routes.get("/lesson/{id:path}")
def lesson(client: Client, id: str) -> HTMLResponse:
    """Show the page, or the lessons with the nearest names."""
    answer = _asked(client, id)
    entry = answer.entry
    if entry is None:
        values: dict[str, Any] = {"title": "No such lesson", "near": answer.near}
        return page("lesson_missing.html", at="/lessons", status=404, id=id, **values)
    if entry.withheld:  # the title may be what is to stay private
        values = {"parts": PRIVATE, "title": entry.id, "body": None}
    else:
        values = {"parts": PUBLIC, "title": entry.title, "body": True, **_body(answer, entry)}
    return page("lesson.html", at="/lessons", id=entry.id, **values)


@page_routes.get(f"{PUBLIC}/body")
@page_routes.get(f"{PRIVATE}/body")
def body(client: Client, request: Request, id: LessonId) -> HTMLResponse:
    """Show the lesson alone."""
    return fragment("lesson_body.html", **_body(*_required_entry(client, request, id)))


@page_routes.get(f"{PUBLIC}/near")
@page_routes.get(f"{PRIVATE}/near")
def near(client: Client, request: Request, id: LessonId) -> HTMLResponse:
    """Show what it names as related, what names it, and the lessons that are most like it."""
    _required_entry(client, request, id)
    # it may be moved or deleted meanwhile
    links = client.ask(api.lesson.related(id=id, both=True), status=404)
    nearest = client.ask(api.lesson.nearest(id=id), status=404)
    lessons = [each for each in nearest if each.likeness is None or each.likeness >= RELATED]
    return fragment("lesson_near.html", links=links, lessons=lessons)


@page_routes.get(f"{PUBLIC}/prompts")
@page_routes.get(f"{PRIVATE}/prompts")
def prompts(client: Client, request: Request, id: LessonId) -> HTMLResponse:
    """Show its own prompts, and whether each passes."""
    _required_entry(client, request, id)
    return fragment("lesson_prompts.html", tried=client.ask(api.lesson.prompts(id=id), status=404))


@page_routes.get(f"{PRIVATE}/past")
def past(client: Client, id: LessonId) -> HTMLResponse:
    """Show how often agents got it, and the commits that changed it."""
    used = client.ask(api.lesson.tally(id=id))
    edits = client.ask(api.share.log(name=id, limit=MAX_EDITS + 1), status=404).edits
    values = {"edits": edits[:MAX_EDITS], "more": len(edits) > MAX_EDITS}
    return fragment("lesson_past.html", id=id, used=used, **values)


@page_routes.get(f"{PRIVATE}/patch")
def patch(client: Client, id: LessonId, commit: Annotated[Id, Query()]) -> HTMLResponse:
    """Show what a commit changed."""
    text = client.ask(api.lesson.diff(id=id, commit=commit), status=404)
    lines = text.split("\n")
    first = next((number for number, line in enumerate(lines) if line.startswith("@@")), len(lines))
    changed = [line for line in lines[first:] if line]
    left_out = max(0, len(changed) - MAX_PATCH)
    return fragment("diff.html", lines=changed[:MAX_PATCH], left_out=left_out)


def _asked(client: VaultClient, id: str) -> Page:
    if not id.isprintable() or not id.strip() or len(id) > MAX_ID:
        return Page(None)
    return client.ask(api.lesson.page(name=id), status=404)


def _required_entry(client: VaultClient, request: Request, id: str) -> tuple[Page, WholeEntry]:
    """Return a lesson for a fragment; a withheld one only for a private one. Raises Refusal."""
    answer = _asked(client, id)
    entry = answer.entry
    if entry is None:
        raise Refusal(404, "there is no such lesson any more", "search for it")
    if entry.withheld and not request.url.path.startswith(f"{PRIVATE}/"):
        raise Refusal(403, "this lesson is withheld", "open the page with its key")
    return answer, entry


def _body(answer: Page, entry: WholeEntry) -> dict[str, Any]:
    of_file = answer.of_file
    ids = [other.id for other in of_file]
    index = ids.index(entry.id) if entry.id in ids else 0
    keys = [(key, words) for key, words in answer.metadata if key not in SHOWN_KEYS and words]
    return {
        "entry": entry,
        "text": html_of(entry.text, entry.path),
        "keys": keys,
        "of_file": of_file if len(of_file) > 1 else [],
        "before": of_file[index - 1] if index else None,
        "after": of_file[index + 1] if index + 1 < len(of_file) else None,
    }
