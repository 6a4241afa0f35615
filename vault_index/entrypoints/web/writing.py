"""Write from a page: one plain form, for a new lesson and for the fields of one that is there.

It calls the commands of the command line, with their checks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, Field

from vault_index import api
from vault_index.entrypoints.web.fields import Id, Text
from vault_index.entrypoints.web.lessons import PRIVATE, FileText, one_at_a_time
from vault_index.entrypoints.web.refusal import Refusal
from vault_index.entrypoints.web.render import address_with, fragment, page
from vault_index.entrypoints.web.vault_client import Client
from vault_index.lesson.parse import TYPES

TEXTS = ("title", "text", "type")  # of a new lesson
LISTS = ("categories", "tags", "prompts", "fires_on", "silent_on", "fires_on_error", "applies_to")
MAX_LINES = 100  # of a field
FORM = f"{PRIVATE}/form"

routes = APIRouter(include_in_schema=False)
Line = Annotated[Text, Field(max_length=500)]
Lines = Annotated[list[Line], Field(max_length=MAX_LINES)]
Asked = Annotated[Text, Query(max_length=1000)]


class FormBody(BaseModel):
    """All that was typed into the form; of a lesson that is there, the fields that changed.

    `seen` is the hash of its file as the form was filled from it.
    """

    id: Id = ""
    seen: Line = ""
    title: Line | None = None
    text: FileText | None = None
    type: Line | None = None
    confidence: Annotated[int, Field(ge=0, le=5)] | None = None
    categories: Lines | None = None
    tags: Lines | None = None
    prompts: Lines | None = None
    fires_on: Lines | None = None
    silent_on: Lines | None = None
    fires_on_error: Lines | None = None
    applies_to: Lines | None = None


@routes.get("/new")
def new(id: Asked = "", error: Asked = "") -> HTMLResponse:
    """Show the form: for the lesson `id`, or for a new one, which is to come at the failure `error`."""
    title = "Edit lesson" if id else "New lesson"
    return page("new.html", at="/lessons", title=title, form=address_with(FORM, id=id, error=error))


# words of a refusal that tell which field it is about, where no check of one value does
ABOUT = {"title": "title", "text": "text", "categor": "categories", "type": "type"}
_PLACE = re.compile(r"^not written: line \d+: [\w-]+: ")


@routes.get(FORM)
def form(client: Client, id: Asked = "", error: Asked = "") -> HTMLResponse:
    """Show its fields."""
    it: Any = {**dict.fromkeys(TEXTS, ""), **dict.fromkeys(LISTS, ())}
    it |= {"id": "", "file_hash": "", "confidence": 0, "fires_on_error": [error] if error else ()}
    if id:
        it = client.ask(api.lesson.show(name=id), status=404, settled=True)
    categories = sorted(client.ask(api.lesson.count()).counts)
    return fragment("new_form.html", it=it, types=TYPES, categories=categories)


@routes.post(FORM, dependencies=[Depends(one_at_a_time)])
def write(client: Client, body: FormBody) -> dict[str, str]:
    """Write a new lesson, or what changed of one; return its id, which may be another."""
    values = body.model_dump(exclude={"id", "seen"}, exclude_none=True)
    if not values.get("title", "" if not body.id else "-").strip():
        raise Refusal(422, "a lesson needs a title", "type one", "title")
    try:
        if body.id:
            command = api.edit.update_lesson(name=body.id, seen=body.seen, **values)
            return {"id": client.change(command)[0].id}
        values["confidence"] = body.confidence or None
        return {"id": client.change(api.edit.add_lesson(**values))[0].id}
    except Refusal as refusal:
        raise _at_its_field(refusal, values) from None


def _at_its_field(refusal: Refusal, values: Mapping[str, Any]) -> Refusal:
    """Return a refusal of a form in a sentence without a line of the file, with the field it is about."""
    from vault_index import check

    error = _PLACE.sub("", refusal.error)
    for name, value in values.items():
        text = "\n".join(value) if isinstance(value, list) else str(value or "")
        if check.first_error("form.md", text.encode()):
            return Refusal(refusal.status, error, refusal.hint, name)
    field = next((name for word, name in ABOUT.items() if word in error), "")
    return Refusal(refusal.status, error, refusal.hint, field if field in values else "")
