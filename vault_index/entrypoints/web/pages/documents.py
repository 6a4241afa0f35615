"""The page of documents: courses and collections, found by half-remembered names, with their lessons."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse

from vault_index.entrypoints.web.door import OpenDoor
from vault_index.entrypoints.web.pages.render import fragment, page
from vault_index.entrypoints.web.shapes import Text

AT_ONCE = 100  # documents; a button shows more
WEB = ("https://", "http://")

Name = Annotated[Text, Query(max_length=1000)]

routes = APIRouter(include_in_schema=False)


@routes.get("/documents")
def documents(name: Name = "") -> HTMLResponse:
    """Show the page."""
    return page("documents.html", at="/documents", title="Documents", name=name)


@routes.get("/page/documents/list")
def listed(
    door: OpenDoor, name: Name = "", limit: Annotated[int, Query(ge=1, le=100_000)] = AT_ONCE
) -> HTMLResponse:
    """Show the documents, or those that may be called so."""
    found = door.ask("documents", {"name": name})["documents"]
    return fragment(
        "documents_list.html",
        documents=[_linked(document) for document in found[:limit]],
        courses=sum(document["kind"] == "course" for document in found),
        count=len(found),
        name=name.strip(),
        next_limit=limit + AT_ONCE if len(found) > limit else 0,
    )


@routes.get("/page/documents/contents")
def contents(door: OpenDoor, path: Annotated[Text, Query(max_length=4000)]) -> HTMLResponse:
    """Show the lessons of a document."""
    lessons = door.ask("contents", {"path": path})["lessons"]
    return fragment("documents_contents.html", lessons=list(map(_linked, lessons)))


def _linked(values: dict[str, Any]) -> dict[str, Any]:
    """Return a document or lesson with a link only where it leads into the web."""
    return {**values, "link": values["link"] if values["link"].lower().startswith(WEB) else ""}
