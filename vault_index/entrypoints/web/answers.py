"""The route that asks: each question has a thread of its own, and its answer is sent as it is written.

A model writes for seconds or minutes. Its question holds none of the threads that searches share, and
`ANSWERS` of them are under way at once; the others wait, and hold nothing. When a client goes away, or
the server ends, its model is stopped within a second or two, also one that is silent. So that a proxy
waits with its client, a stream has a comment in each second without an event.

Each question may cost its user money, and the journal may answer it, so it needs the token. Which model
answers is for the user's settings, not for a request.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from concurrent.futures import Future
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from fastapi.sse import EventSourceResponse, format_sse_event

from vault_index.entrypoints.web.refusal import Refusal
from vault_index.entrypoints.web.shapes import AskAnswer, AskBody
from vault_index.entrypoints.web.vault_client import ANSWERS, Client

if TYPE_CHECKING:
    from vault_index.entrypoints.guard import Receive
    from vault_index.entrypoints.web.vault_client import VaultClient


T = TypeVar("T")
Event = Mapping[str, Any]  # its kind is at "event"
Events = AsyncGenerator[Event, None]


WAITING: Event = {"event": "waiting"}
TURN_SECONDS = 10.0  # after which a question that waits for its turn says so
END_SECONDS = 5.0  # for the models that are stopped when the server ends


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
            return client.answer(values, take)
        finally:
            in_loop(coming.put_nowait, None)
            in_loop(client.answers.release)

    while not await _has_turn(client):
        yield WAITING
    if client.is_ending:
        client.answers.release()
        raise _ending()
    answer = _in_own_thread(work)
    try:
        while (event := await coming.get()) is not None:
            yield _shown(client, event)
        try:
            whole: dict[str, Any] = await asyncio.wrap_future(answer)
        except Left:  # this client has not
            raise _ending() from None
        yield _shown(client, {"event": "done", **whole})
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


async def end(client: VaultClient) -> None:
    """Stop the models of all questions under way, and wait for that."""
    client.is_ending = True
    with suppress(TimeoutError):
        async with asyncio.timeout(END_SECONDS):
            for _ in range(ANSWERS):
                await client.answers.acquire()
                await asyncio.sleep(0)  # those that wait for a turn hear of the end, too


async def last(events: Events) -> Event:
    """Return the last of some events. Raises Refusal."""
    async with aclosing(events):
        latest: Event = {}
        async for event in events:
            latest = event
        return latest


async def while_there(receive: Receive, work: Coroutine[Any, Any, T]) -> T | None:
    """Return what work comes to; where the client leaves before, end the work and return None."""
    working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(_has_left(receive))
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        working.cancel()
        leaving.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


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
            said = {"event": "error", "error": refusal.error, "hint": refusal.hint}
            yield _bytes_of({**said, "status": refusal.status})


def _bytes_of(event: Event) -> bytes:
    """Return what is sent of an event: a line of JSON after its name, or a comment."""
    if event["event"] == WAITING["event"]:
        return format_sse_event(comment="waiting")
    values = {key: value for key, value in event.items() if key != "event"}
    return format_sse_event(event=event["event"], data_str=json.dumps(values))


def _in_own_thread(work: Callable[[], T]) -> Future[T]:
    """Start work in a thread that does not hold up the end of the process."""
    result: Future[T] = Future()

    def run() -> None:
        try:
            result.set_result(work())
        except BaseException as error:  # noqa: BLE001  # whoever waits for the result gets it
            result.set_exception(error)

    threading.Thread(target=run, daemon=True, name="answer").start()
    return result


async def _has_left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _shown(client: VaultClient, value: Any) -> Any:
    """Return JSON values in which no folder of this machine is named."""
    if isinstance(value, Mapping):
        return {key: _shown(client, each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_shown(client, each) for each in value]
    return client.shown(value) if isinstance(value, str) else value


EVENTS = "text/event-stream"

routes = APIRouter(prefix="/api", tags=["ask"])


@routes.post("/ask", response_model=AskAnswer)
async def ask(client: Client, body: AskBody, request: Request) -> Response:
    """Answer a question from the vault, with its sources.

    With `Accept: text/event-stream` the answer comes as it is written, in events: `search`,
    `passages`, `piece` (the next characters), `done` (the whole answer) or `error`.
    """
    coming = events(client, values_of(body))
    if EVENTS in request.headers.get("accept", ""):
        return stream(coming)
    done = await while_there(request.receive, last(coming))
    return JSONResponse({key: value for key, value in (done or {}).items() if key != "event"})


def values_of(body: AskBody) -> dict[str, Any]:
    """Return a request's values as the command takes them."""
    values = {"query": body.query, "session_id": body.session_id}
    return values | {"document": body.document, "category": body.category}
