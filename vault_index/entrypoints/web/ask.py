"""Asking over HTTP, by a route and by a page: an answer is sent as it is written.

A model writes for seconds or minutes, in a thread apart from searches; `ANSWERS` are under way at once,
the others wait. When a client goes away, or the server ends, its model is stopped within a second or two.
A stream has a comment in each second without an event, so that a proxy waits.

A question may cost money, and the journal may answer it, so it needs the token; suggestions come from
lessons alone. The user's settings choose the model.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from typing import Annotated, Any
from urllib.parse import urlsplit

from anyio.to_thread import run_sync
from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from fastapi.sse import EventSourceResponse, format_sse_event
from pydantic import Field

from vault_index import api
from vault_index.ask import sentences
from vault_index.ask.respond import Answer
from vault_index.entrypoints.web.fields import (
    Body,
    Document,
    LessonNumber,
    Said,
    Text,
    shown_as,
)
from vault_index.entrypoints.web.markdown import html_of
from vault_index.entrypoints.web.refusal import Refusal, refuse_unknown
from vault_index.entrypoints.web.render import fragment, page
from vault_index.entrypoints.web.vault_client import Client, VaultClient
from vault_index.lesson.file import hash_of
from vault_index.llm.cancel import in_thread
from vault_index.text.blocks import after_title

Event = Mapping[str, Any]  # its kind is at "event"
Events = AsyncGenerator[Event, None]

WAITING: Event = {"event": "waiting"}
TURN_SECONDS = 10.0  # after which a question that waits for its turn says so


class Left(Exception):
    """The client has gone, or the server ends: nobody reads the rest of the answer."""


async def events(client: VaultClient, values: dict[str, Any]) -> Events:
    """Yield the parts of an answer as they come, and the whole of it as `done`.

    No folder of this machine is named in them. Raises Refusal. To close it stops the model.
    """
    loop, has_left = asyncio.get_running_loop(), threading.Event()
    coming: asyncio.Queue[Event | None] = asyncio.Queue()

    def in_loop(call: Callable[..., None], *values: object) -> None:
        with suppress(RuntimeError):  # the server has ended meanwhile
            loop.call_soon_threadsafe(call, *values)

    def take(event: Event) -> None:
        if has_left.is_set() or client.is_ending:
            raise Left
        in_loop(coming.put_nowait, event)

    def work() -> dict[str, Any]:
        try:
            return client.answer(api.asking.ask(**values), take)
        finally:
            in_loop(coming.put_nowait, None)
            in_loop(client.answers.release)

    while not await _has_turn(client):
        yield WAITING
    if client.is_ending:
        client.answers.release()
        raise _ending()
    answer = in_thread(work, "answer")
    try:
        while (event := await coming.get()) is not None:
            yield client.shown_values(event)
        try:
            whole: dict[str, Any] = await asyncio.wrap_future(answer)
        except Left:  # this client has not
            raise _ending() from None
        yield client.shown_values({"event": "done", **whole})
    finally:
        has_left.set()


async def _has_turn(client: VaultClient) -> bool:
    """Whether a turn came, which lasts until the thread ends, maybe after its client left."""
    try:
        return await asyncio.wait_for(client.answers.acquire(), TURN_SECONDS)
    except TimeoutError:
        return False


def _ending() -> Refusal:
    return Refusal(503, "the server ends", "ask again when it runs: lessons serve")


def stream(events: Events) -> EventSourceResponse:
    """Return a response of events as `text/event-stream`; a refusal in their midst is `error`."""
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return EventSourceResponse(_encoded(events), headers=headers)


async def _encoded(events: Events) -> AsyncGenerator[bytes, None]:
    async with aclosing(events):
        try:
            async for event in events:
                yield _bytes_of(event)
        except Refusal as refusal:
            yield _bytes_of({"event": "error", **vars(refusal)})


def _bytes_of(event: Event) -> bytes:
    if event["event"] == WAITING["event"]:
        return format_sse_event(comment="waiting")
    values = {key: value for key, value in event.items() if key != "event"}
    return format_sse_event(event=event["event"], data_str=json.dumps(values))


EVENTS = "text/event-stream"
MAX_QUESTION_CHARS = 10_000


class AskBody(Body):
    """A question. `document` and `category` narrow its search; their names may be half remembered.

    `lesson` is the number of one of the document. `session_id` is one that an answer had, or one of the
    client's own, under which nobody else goes on.
    """

    query: Annotated[Said, Field(max_length=MAX_QUESTION_CHARS)]
    session_id: Annotated[Text, Field(max_length=200)] = ""
    document: Document = ""
    lesson: LessonNumber | None = None
    category: Annotated[Text, Field(max_length=200)] = ""


routes = APIRouter(prefix="/api", tags=["ask"], dependencies=[Depends(refuse_unknown)])


ANSWERED = shown_as(Answer, notes=(list[str], ...))


@routes.post("/ask", response_model=ANSWERED)
async def ask(client: Client, body: AskBody, request: Request) -> Response:
    """Answer a question from the vault, with its sources.

    With `Accept: text/event-stream` the answer comes as it is written, in events: `search`,
    `passages`, `piece` (the next characters), `done` (the whole answer) or `error`.
    """
    coming = events(client, body.model_dump() | _owner(request))
    if EVENTS in request.headers.get("accept", ""):
        return stream(coming)
    last: Event = {}
    async with aclosing(coming):
        async for event in coming:
            if await request.is_disconnected():  # nobody reads the answer: its model is stopped
                return Response(status_code=499)
            last = event
    return JSONResponse({key: value for key, value in last.items() if key != "event"})


def _owner(request: Request) -> dict[str, str]:
    """Return whose the id of a conversation is that a client chose: the token's, or a page's key's."""
    return {"owner": hash_of(request.headers.get("authorization", ""))}


_CITATION = re.compile(r"\[(\d{1,3})\]")

page_routes = APIRouter(include_in_schema=False)


@page_routes.get("/ask")
def conversation() -> HTMLResponse:
    """Show the page."""
    return page("ask.html", at="/ask", title="Ask")


@page_routes.get("/page/ask/suggested")
def suggested(client: Client) -> HTMLResponse:
    """Show questions to begin with."""
    return fragment("ask_suggested.html", questions=client.ask_cached(api.asking.suggest()))


@page_routes.get("/page/private/ask/state")
def state(client: Client) -> HTMLResponse:
    """Show who answers."""
    settings = {each.name: each.value for each in client.ask(api.state.settings())}
    return fragment("ask_state.html", model=settings["ask.model"])


@page_routes.post("/page/private/ask")
async def answer(client: Client, body: AskBody, request: Request) -> EventSourceResponse:
    """Send an answer as it is written, and its HTML at the end."""
    return stream(_as_html(events(client, body.model_dump() | _owner(request))))


async def _as_html(events: Events) -> Events:
    """Yield events as the page needs them."""
    async with aclosing(events):
        async for event in events:
            if event["event"] == "passages":
                yield {"event": "passages", "count": len(event["passages"])}
            elif event["event"] == "done":
                ended = {key: event[key] for key in ("event", "status", "session_id")}
                ended["sources"] = len(event["sources"])
                yield {**ended, "html": await run_sync(html_of_answer, event)}
            else:
                yield event


def html_of_answer(answer: Mapping[str, Any]) -> str:
    """Return an answer with its sources, as HTML in which nothing acts."""
    is_open = not answer["sources"] and (not answer["model"] or bool(answer["trouble"]))
    shown = answer["passages"] if is_open else answer["sources"]
    numbers = {each["number"] for each in shown}

    def button(citation: re.Match[str]) -> str:
        number = int(citation[1])
        cited = f'<button type="button" class="cite" data-cited="{number}">[{number}]</button>'
        return cited if number in numbers else citation[0]

    text = html_of(answer["answer"], marked=_CITATION, mark=button)
    sources = [
        {
            **each,
            **_text_of(each, sentences.runs(each["text"], each["best"])),
            "host": _host(each["link"]),
        }
        for each in shown
    ]
    response = fragment(
        "ask_answer.html", answer=answer, text=text, sources=sources, is_open=is_open
    )
    return bytes(response.body).decode()


_BETWEEN = re.compile(r"`[^`]*`|\]\([^)]*\)|[\[*_\n]+")  # what a parser takes out of a sentence
_LEAST_CHARS = 8  # of a part that is marked: a shorter one is found elsewhere, too


def _text_of(source: Mapping[str, Any], runs: Sequence[tuple[str, bool]]) -> dict[str, Any]:
    """Return the text of a source: the HTML of a lesson's, with marks in its best runs; else the runs."""
    if source["kind"] != "lessons":
        return {"runs": runs, "html": None}
    best = (part.strip() for run, is_best in runs if is_best for part in _BETWEEN.split(run))
    long = sorted({part for part in best if len(part) >= _LEAST_CHARS}, key=len, reverse=True)
    marked = re.compile("|".join(map(re.escape, long))) if long else None
    text = after_title(source["text"], source["title"])
    return {"html": html_of(text, source["path"], marked=marked)}


def _host(link: str) -> str:
    try:
        parts = urlsplit(link)
    except ValueError:
        return ""
    return parts.netloc if parts.scheme in ("http", "https") else ""
