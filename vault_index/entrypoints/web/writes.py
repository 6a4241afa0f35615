"""The routes that change lesson files, one request at a time; the disk has a change before its answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

from fastapi import APIRouter, Depends

from vault_index.entrypoints.web.door import Door, OpenDoor
from vault_index.entrypoints.web.refusal import Refusal
from vault_index.entrypoints.web.shapes import (
    BulkAnswer,
    BulkBody,
    DeleteAnswer,
    IngestAnswer,
    IngestBody,
    UpdateAnswer,
    UpdateBody,
)

STATUSES = {"taken": 409, "refused": 422, "failed": 507}


async def one_at_a_time(door: OpenDoor) -> AsyncIterator[None]:
    """Wait for the writes before this one; a request that waits holds no thread."""
    async with door.turn:
        yield


routes = APIRouter(prefix="/api", tags=["writes"], dependencies=[Depends(one_at_a_time)])


@routes.post("/ingest", response_model=IngestAnswer)
def ingest(door: OpenDoor, body: IngestBody) -> dict[str, Any]:
    """Add a lesson to the vault, as a file. Without categories the classifier proposes some."""
    (written,) = _written(door, [body])
    if "error" in written:
        raise Refusal(STATUSES[written["kind"]], written["error"], written["hint"])
    return _classified(door, [written])[0]


@routes.post("/ingest/bulk", response_model=BulkAnswer)
def ingest_bulk(door: OpenDoor, body: BulkBody) -> dict[str, Any]:
    """Add lessons to the vault; one that is refused keeps no other out."""
    items = _written(door, body.lessons)
    errors = [
        {"index": number, **{key: item[key] for key in ("id", "error", "hint")}}
        for number, item in enumerate(items)
        if "error" in item
    ]
    lessons = _classified(door, [item for item in items if "error" not in item])
    return {"ingested": len(lessons), "errors": errors, "lessons": lessons}


@routes.put("/lessons/{id:path}", response_model=UpdateAnswer)
def update(door: OpenDoor, id: str, body: UpdateBody) -> dict[str, Any]:
    """Change a lesson in its file; what the request does not name stays."""
    named = {"text": body.text, "categories": body.categories, "source": body.source_file}
    changes = {name: value for name, value in named.items() if value is not None}
    if not changes:
        raise Refusal(422, "nothing is to be changed", "send text, categories or source_file")
    categories = _required(door, id)
    door.change("update", {"name": id, **changes}, _path)
    if body.categories is not None:
        categories = _filed(door, [id]).get(id, [])
    return {"id": id, "categories": categories, "status": "updated"}


@routes.delete("/lessons/{id:path}", response_model=DeleteAnswer)
def delete(door: OpenDoor, id: str) -> dict[str, Any]:
    """Delete a lesson: its file, or its section of one. Git keeps what was committed."""
    _required(door, id)
    door.change("delete", {"name": id}, _path)
    return {"id": id, "status": "deleted"}


def _written(door: Door, bodies: Iterable[IngestBody]) -> list[dict[str, Any]]:
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
    written: list[dict[str, Any]] = door.change("ingest", {"items": items}, lambda _: [])["items"]
    for item in written:
        for key in {"error", "hint"} & set(item):
            item[key] = door.shown_error(item[key])
    return written


def _classified(door: Door, items: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return lessons that were written; those without categories have what the classifier proposes."""
    items = list(items)
    unfiled = [item["id"] for item in items if not item["categories"]]
    proposed = _filed(door, unfiled) if unfiled else {}
    return [
        {
            "id": item["id"],
            "categories": item["categories"] or proposed.get(item["id"], []),
            "status": "ingested",
        }
        for item in items
    ]


def _required(door: Door, id: str) -> list[str]:
    """Return the categories of the lesson that has exactly this id. Raises Refusal without one."""
    if "\0" in id or len(id) > 1000:
        raise Refusal(400, "this is not an id", "send that of a lesson")
    categories: dict[str, list[str]] = door.ask("filed", {"ids": [id]})["categories"]
    if id not in categories:
        raise Refusal(404, "there is no lesson of this id", "send one as /api/query returned it")
    return categories[id]


def _filed(door: Door, ids: list[str]) -> dict[str, list[str]]:
    """Return the categories of lessons when all is filed that was just written."""
    filed: dict[str, list[str]] = door.ask("filed", {"ids": ids}, settled=True)["categories"]
    return filed


def _path(answer: Mapping[str, Any]) -> list[str]:
    return [answer["path"]]
