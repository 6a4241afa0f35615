"""The route that asks: an answer with its sources, whole or as it is written.

Each question may cost its user money, and the journal may answer it, so it needs the token. Which model
answers is for the user's settings, not for a request.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from vault_index.entrypoints.web import answers
from vault_index.entrypoints.web.door import OpenDoor
from vault_index.entrypoints.web.shapes import AskAnswer, AskBody

EVENTS = "text/event-stream"

routes = APIRouter(prefix="/api", tags=["ask"])


@routes.post("/ask", response_model=AskAnswer)
async def ask(door: OpenDoor, body: AskBody, request: Request) -> Response:
    """Answer a question from the vault, with its sources.

    With `Accept: text/event-stream` the answer comes as it is written, in events: `search`,
    `passages`, `piece` (the next characters), `done` (the whole answer) or `error`.
    """
    events = answers.events(door, values_of(body))
    if EVENTS in request.headers.get("accept", ""):
        return answers.stream(events)
    done = await answers.while_there(request.receive, answers.last(events))
    return JSONResponse({key: value for key, value in (done or {}).items() if key != "event"})


def values_of(body: AskBody) -> dict[str, Any]:
    """Return a request's values as the command takes them."""
    values = {"query": body.query, "session_id": body.session_id}
    return values | {"document": body.document, "category": body.category}
