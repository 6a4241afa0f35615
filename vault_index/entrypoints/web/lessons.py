"""The routes that read and change lessons; the disk has a change before its answer."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

from fastapi import APIRouter, Depends
from fastapi.responses import JSONResponse

from vault_index.entrypoints.web.refusal import Refusal
from vault_index.entrypoints.web.shapes import (
    BulkAnswer,
    BulkBody,
    CategoriesAnswer,
    CoursesAnswer,
    DeleteAnswer,
    Health,
    IngestAnswer,
    IngestBody,
    QueryAnswer,
    QueryBody,
    UpdateAnswer,
    UpdateBody,
)
from vault_index.entrypoints.web.vault_client import Client, VaultClient

STATUSES = {"taken": 409, "refused": 422, "failed": 507}


async def one_at_a_time(client: Client) -> AsyncIterator[None]:
    """Wait for the writes before this one; a request that waits holds no thread."""
    async with client.turn:
        yield


routes = APIRouter(prefix="/api", tags=["writes"], dependencies=[Depends(one_at_a_time)])


@routes.post("/ingest", response_model=IngestAnswer)
def ingest(client: Client, body: IngestBody) -> dict[str, Any]:
    """Add a lesson to the vault, as a file. Without categories the classifier proposes some."""
    (written,) = _written(client, [body])
    if "error" in written:
        raise Refusal(STATUSES[written["kind"]], written["error"], written["hint"])
    return _classified(client, [written])[0]


@routes.post("/ingest/bulk", response_model=BulkAnswer)
def ingest_bulk(client: Client, body: BulkBody) -> dict[str, Any]:
    """Add lessons to the vault; one that is refused keeps no other out."""
    items = _written(client, body.lessons)
    errors = [
        {"index": number, **{key: item[key] for key in ("id", "error", "hint")}}
        for number, item in enumerate(items)
        if "error" in item
    ]
    lessons = _classified(client, [item for item in items if "error" not in item])
    return {"ingested": len(lessons), "errors": errors, "lessons": lessons}


@routes.put("/lessons/{id:path}", response_model=UpdateAnswer)
def update(client: Client, id: str, body: UpdateBody) -> dict[str, Any]:
    """Change a lesson in its file; what the request does not name stays."""
    named = {"text": body.text, "categories": body.categories, "source": body.source_file}
    changes = {name: value for name, value in named.items() if value is not None}
    if not changes:
        raise Refusal(422, "nothing is to be changed", "send text, categories or source_file")
    categories = _required(client, id)
    client.change("update", {"name": id, **changes}, _path)
    if body.categories is not None:
        categories = _filed(client, [id]).get(id, [])
    return {"id": id, "categories": categories, "status": "updated"}


@routes.delete("/lessons/{id:path}", response_model=DeleteAnswer)
def delete(client: Client, id: str) -> dict[str, Any]:
    """Delete a lesson: its file, or its section of one. Git keeps what was committed."""
    _required(client, id)
    client.change("delete", {"name": id}, _path)
    return {"id": id, "status": "deleted"}


def _written(client: VaultClient, bodies: Iterable[IngestBody]) -> list[dict[str, Any]]:
    """Write lessons; return each with its id and categories, or what is wrong with it."""
    items = [
        {
            "id": body.id or "",
            "text": body.text,
            "categories": body.categories or [],
            "source": body.source_file or "",
        }
        for body in bodies
    ]
    written: list[dict[str, Any]] = client.change("ingest", {"items": items}, lambda _: [])["items"]
    for item in written:
        for key in {"error", "hint"} & set(item):
            item[key] = client.shown_error(item[key])
    return written


def _classified(client: VaultClient, items: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return lessons that were written; those without categories have what the classifier proposes."""
    items = list(items)
    unfiled = [item["id"] for item in items if not item["categories"]]
    proposed = _filed(client, unfiled) if unfiled else {}
    return [
        {
            "id": item["id"],
            "categories": item["categories"] or proposed.get(item["id"], []),
            "status": "ingested",
        }
        for item in items
    ]


def _required(client: VaultClient, id: str) -> list[str]:
    """Return the categories of the lesson that has exactly this id. Raises Refusal without one."""
    if "\0" in id or len(id) > 1000:
        raise Refusal(400, "this is not an id", "send that of a lesson")
    categories: dict[str, list[str]] = client.ask("filed", {"ids": [id]})["categories"]
    if id not in categories:
        raise Refusal(404, "there is no lesson of this id", "send one as /api/query returned it")
    return categories[id]


def _filed(client: VaultClient, ids: list[str]) -> dict[str, list[str]]:
    """Return the categories of lessons when all is filed that was just written."""
    filed: dict[str, list[str]] = client.ask("filed", {"ids": ids}, settled=True)["categories"]
    return filed


def _path(answer: Mapping[str, Any]) -> list[str]:
    return [answer["path"]]


# The routes that read lessons: query, categories, courses, health.

BOTH = ("lessons", "skills")
NO_MODEL = "none"  # full text alone answers

query_routes = APIRouter(prefix="/api", tags=["lessons"])


@query_routes.post("/query", response_model=QueryAnswer)
def query(client: Client, body: QueryBody) -> JSONResponse:
    """Find the lessons and skills that answer a prompt."""
    began = time.perf_counter()
    asked: dict[str, Any] = {"text": body.prompt, "k": body.top_k}
    asked["kinds"] = list(body.collections or BOTH)
    asked["categories"] = body.categories or []
    answer = client.ask("query", asked)
    least = _min_score(body, answer)
    hits: dict[str, list[dict[str, Any]]] = {kind: [] for kind in asked["kinds"]}
    for hit in answer["hits"]:
        # hooks leave out what is withheld, too: a secret, or orders to the agent
        if hit["score"] >= least and not hit["withheld"] and is_shared(hit):
            hits[hit["kind"]].append(_shown(hit))
    results: dict[str, Any] = {"results": hits}
    if not body.collections:
        results = hits if hits["skills"] else {"lessons": hits["lessons"]}
    took = round(1000 * (time.perf_counter() - began), 1)
    return JSONResponse({**results, "query_time_ms": took, "model": _model(answer)})


@query_routes.get("/categories", response_model=CategoriesAnswer)
def categories(client: Client) -> dict[str, Any]:
    """Count the lessons in and below each category."""
    return {"categories": client.ask("categories", {})["counts"]}


@query_routes.get("/courses", response_model=CoursesAnswer)
def courses(client: Client) -> dict[str, Any]:
    """List the documents with numbered lessons."""
    listed = client.ask("courses", {}, settled=True)["courses"]
    shown = [{**course, "lesson_count": len(course["lessons"])} for course in listed]
    titles = [course["title"] for course in listed]
    return {"total_courses": len(titles), "course_titles": titles, "courses": shown}


@query_routes.get("/health", response_model=Health, responses={503: {"model": Health}})
def health(client: Client) -> JSONResponse:
    """Say whether searching is possible; with status 503 it is not, for the `reason`."""
    state: dict[str, Any] = {"embedder": "", "tables": {}, "lesson_count": 0, "model": ""}
    state["uptime"] = round(time.monotonic() - client.began, 1)
    try:
        answer = client.ask("health", {})
    except Refusal as refusal:
        reason = "; ".join(filter(None, [refusal.error, refusal.hint]))
        return JSONResponse({"status": "unavailable", **state, "reason": reason}, 503)
    state |= {"embedder": answer["embedder"], "tables": answer["tables"]}
    state |= {"lesson_count": answer["lessons"], "model": _model(answer)}
    return JSONResponse({"status": "ok", **state})


def _shown(hit: Mapping[str, Any]) -> dict[str, Any]:
    """Return a hit with the fields of the API."""
    return {
        "id": hit["lesson_id"],
        "text": hit["text"],
        "score": hit["score"],
        "categories": list(hit["categories"]),
        "source_file": hit["path"],
        "created_at": hit["created_at"],
    }


def is_shared(hit: Mapping[str, Any]) -> bool:
    """Whether a hit is the vault's: the user's own skills are not for whoever can ask a port."""
    return bool(hit["kind"] == "lessons" or hit["type"] == "vault")


def _model(answer: Mapping[str, Any]) -> str:
    return NO_MODEL if answer["text_only"] else str(answer["model"])


def _min_score(body: QueryBody, answer: Mapping[str, Any]) -> float:
    """Return the score below which hits are left out; full text alone scores a tenth of the rest."""
    by_default = "min_score" not in body.model_fields_set
    if body.min_score is None or (by_default and answer["text_only"]):
        return float("-inf")
    return body.min_score
