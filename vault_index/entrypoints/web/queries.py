"""The routes that read lessons: query, categories, courses, health."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from vault_index.entrypoints.web.door import OpenDoor
from vault_index.entrypoints.web.refusal import Refusal
from vault_index.entrypoints.web.shapes import (
    CategoriesAnswer,
    CoursesAnswer,
    Health,
    QueryAnswer,
    QueryBody,
)

BOTH = ("lessons", "skills")
NO_MODEL = "none"  # full text alone answers

routes = APIRouter(prefix="/api", tags=["lessons"])


@routes.post("/query", response_model=QueryAnswer)
def query(door: OpenDoor, body: QueryBody) -> JSONResponse:
    """Find the lessons and skills that answer a prompt."""
    began = time.perf_counter()
    asked: dict[str, Any] = {"text": body.prompt, "k": body.top_k}
    asked["kinds"] = list(body.collections or BOTH)
    asked["categories"] = body.categories or []
    answer = door.ask("query", asked)
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


@routes.get("/categories", response_model=CategoriesAnswer)
def categories(door: OpenDoor) -> dict[str, Any]:
    """Count the lessons in and below each category."""
    return {"categories": door.ask("categories", {})["counts"]}


@routes.get("/courses", response_model=CoursesAnswer)
def courses(door: OpenDoor) -> dict[str, Any]:
    """List the documents with numbered lessons."""
    listed = door.ask("courses", {}, settled=True)["courses"]
    shown = [{**course, "lesson_count": len(course["lessons"])} for course in listed]
    titles = [course["title"] for course in listed]
    return {"total_courses": len(titles), "course_titles": titles, "courses": shown}


@routes.get("/health", response_model=Health, responses={503: {"model": Health}})
def health(door: OpenDoor) -> JSONResponse:
    """Say whether searching is possible; with status 503 it is not, for the `reason`."""
    state: dict[str, Any] = {"embedder": "", "tables": {}, "lesson_count": 0, "model": ""}
    state["uptime"] = round(time.monotonic() - door.began, 1)
    try:
        answer = door.ask("health", {})
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
