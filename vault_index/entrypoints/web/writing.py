"""Write from a page, besides a whole file: a new lesson, another title or category, a deletion.

All goes through the commands of the command line, with their checks. A deletion can be taken back while
this server runs: it keeps the bytes of the last files.
"""

from __future__ import annotations

import secrets
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Query
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, Field

from vault_index import api, files
from vault_index.entrypoints.web.lessons import (
    PRIVATE,
    BodyId,
    BodyText,
    FileText,
    LessonId,
    one_at_a_time,
)
from vault_index.entrypoints.web.markdown import html_of
from vault_index.entrypoints.web.refusal import Refusal
from vault_index.entrypoints.web.render import fragment, page
from vault_index.entrypoints.web.shapes import Id, Text
from vault_index.entrypoints.web.vault_client import Client, Deletion, VaultClient
from vault_index.lesson.file import MAX_BYTES
from vault_index.lesson.parse import TYPES, id_of

FIELDS = ("title", "text", "type", "tags", "fires_on", "silent_on", "applies_to")  # of a new lesson
MAX_UNDO = 20  # deletions that can be taken back
MAX_LINES = 100  # of a field

routes = APIRouter(include_in_schema=False)
Line = Annotated[Text, Field(max_length=500)]
BodyLine = Annotated[Line, Body(embed=True)]
Lines = Annotated[list[Line], Field(max_length=MAX_LINES)]


class Fields(BaseModel):
    """Fields of a lesson; those that are absent stay as they are."""

    title: Line | None = None
    text: FileText | None = None
    type: Line | None = None
    confidence: Annotated[int, Field(ge=0, le=5)] | None = None
    tags: Lines | None = None
    fires_on: Lines | None = None
    silent_on: Lines | None = None
    fires_on_error: Lines | None = None
    applies_to: Lines | None = None


class NewBody(Fields):
    """A lesson to be, by its fields."""

    title: Line
    text: FileText
    category: Line = ""
    commit: bool = False


class FieldsBody(Fields):
    """Fields of a lesson that somebody changed, and the text of its file as the page had it."""

    id: Id
    seen: FileText
    categories: Lines | None = None


@routes.get("/new")
def new(client: Client, error: Annotated[Text, Query(max_length=500)] = "") -> HTMLResponse:
    """Show the form for a lesson; `error` is a line of a failure that it is to fire at."""
    try:
        categories = sorted(client.ask_cached(api.lesson.count())["counts"])
    except Refusal:
        categories = []  # one can be typed
    it = {**dict.fromkeys(FIELDS, ""), "fires_on_error": [error], "confidence": 0}
    values: dict[str, Any] = {"categories": categories, "types": TYPES, "it": it}
    has_git = (client.root / ".git").exists()
    return page("new.html", at="", title="New lesson", has_git=has_git, **values)


@routes.post(f"{PRIVATE}/new", dependencies=[Depends(one_at_a_time)])
def create(client: Client, body: NewBody) -> dict[str, str]:
    """Write a new lesson; return its id."""
    values = body.model_dump(exclude={"category"}, exclude_none=True)
    values["confidence"] = body.confidence or None
    categories = [body.category] if body.category.strip() else []
    command = api.edit.add_lesson(categories=categories, **values)
    path = client.change(command, lambda path: [path])
    below = path.removeprefix(f"{client.root}/").partition("/")[2]
    return {"id": id_of(below)}


@routes.get(f"{PRIVATE}/edit")
def edit(client: Client, id: LessonId) -> HTMLResponse:
    """Show its fields, and its file, to be edited."""
    answer = client.ask(api.lesson.page(name=id), status=404, settled=True)
    entry = answer["entry"]
    if entry is None:
        raise Refusal(404, "there is no such lesson", "load the page again")
    text = client.ask(api.edit.read_file(path=entry["path"]), status=422)
    said = "".join(dict(answer["metadata"]).get("confidence", ()))
    confidence = int(said) if said in tuple("12345") else 0  # none, or none of ours
    return fragment(
        "lesson_edit.html",
        it={**entry, "confidence": confidence},
        types=TYPES,
        path=entry["path"],
        file=text,
        lessons=len(answer["of_file"]),
    )


@routes.post(f"{PRIVATE}/fields", dependencies=[Depends(one_at_a_time)])
def change_fields(client: Client, body: FieldsBody) -> dict[str, str]:
    """Write the fields that somebody changed into a lesson; return its id, which may be another."""
    values = body.model_dump(exclude={"id"}, exclude_none=True)
    if not values.get("title", "-").strip():
        raise Refusal(422, "a lesson needs a title", "type one")
    command = api.edit.update_lesson(name=body.id, **values)
    return {"id": client.change(command, lambda changed: [changed.path]).id}


@routes.post(f"{PRIVATE}/preview")
def preview(text: BodyText, path: BodyId = "") -> HTMLResponse:
    """Show a text as the page of its lesson would; with the `path` of its file, if it has one."""
    if text.startswith("---\n"):
        text = text[4:].partition("\n---\n")[2]
    return fragment("lesson_preview.html", text=html_of(text, path))


@routes.post(f"{PRIVATE}/move", dependencies=[Depends(one_at_a_time)])
def move(client: Client, id: BodyId, category: BodyLine) -> dict[str, str]:
    """Move a lesson to a category; return its new id."""
    command = api.edit.move_lesson(name=id, category=category)
    moved = client.change(command, lambda answer: [answer["to"]])
    return {"id": moved["id"], "from": moved["path"], "to": moved["to"]}


@routes.post(f"{PRIVATE}/retitle", dependencies=[Depends(one_at_a_time)])
def retitle(client: Client, id: BodyId, title: BodyLine) -> dict[str, str]:
    """Write another title into a lesson."""
    title = title.strip()
    if not title:
        raise Refusal(422, "a lesson needs a title", "type one")
    command = api.edit.update_lesson(name=id, title=title)
    return {"id": client.change(command, lambda changed: [changed.path]).id, "title": title}


@routes.post(f"{PRIVATE}/delete", dependencies=[Depends(one_at_a_time)])
def delete(client: Client, id: BodyId) -> dict[str, str]:
    """Delete a lesson; return what takes that back."""
    entry = client.ask(api.lesson.show(name=id), status=404)["entry"]
    if entry["id"] != id:
        raise Refusal(404, "there is no lesson of this id", "load the page again")
    before = _read(client, entry["path"])
    if before is None:
        raise Refusal(404, "the file of this lesson is gone", "load the page again")
    client.change(api.edit.delete_lesson(name=id), lambda changed: [changed.path])
    deletion = secrets.token_urlsafe(12)
    after = _read(client, entry["path"])
    client.deletions[deletion] = Deletion(id, entry["path"], before, after)
    while len(client.deletions) > MAX_UNDO:
        del client.deletions[next(iter(client.deletions))]
    return {"deletion": deletion, "title": entry["title"]}


@routes.post(f"{PRIVATE}/undo", dependencies=[Depends(one_at_a_time)])
def undo(client: Client, deletion: BodyId) -> dict[str, str]:
    """Take a deletion back: the file has the same bytes again."""
    gone = client.deletions.get(deletion)
    if gone is None:
        raise Refusal(410, "this deletion is too old to be taken back here", "git has the file")
    command = api.edit.restore_lesson(path=gone.path, before=gone.before, after=gone.after)
    client.change(command, lambda path: [path])
    del client.deletions[deletion]
    return {"id": gone.id}


def _read(client: VaultClient, path: str) -> str | None:
    """Return a lesson file with all of its bytes, None where it is gone. Raises Refusal."""
    with client.refusing(422):
        files.refuse_links(client.root / path, client.root)
        data = files.read_if_any(client.root / path, MAX_BYTES + 1)
    return None if data is None else data.decode("utf-8", "surrogateescape")
