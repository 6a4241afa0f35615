"""Open pages hear of changes: server-sent events, one look-out for all of them.

    GET /page/live   event: changed, data: when the index was written, in ns; first as it is now

The index's manifest is written once for each change, whoever makes it, so a look at its stamp follows
the watcher, a command and a `git pull` alike. Nobody looks while no page listens. A question from time
to time has the watcher run, and has this process notice saves where none may run.

The journal and proposals have no event: an EventSource sends no key, and the moments at which
somebody works are not for others on the machine.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING

from anyio.to_thread import run_sync
from fastapi import APIRouter, Depends, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent

from vault_index.entrypoints.web.refusal import Refusal

if TYPE_CHECKING:
    from vault_index.entrypoints.web.door import Door

LOOK_SECONDS = 0.3  # a stat each time
ASK_SECONDS = 60.0  # a watcher ends after a day without a question, and may be killed
ASK_ALONE_SECONDS = 2.5  # where each question looks for saves itself
MAX_LISTENERS = 100

routes = APIRouter(include_in_schema=False)


class Live:
    """The pages that listen to one vault."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._listeners: set[asyncio.Event] = set()
        self._tasks: list[asyncio.Task[None]] = []  # while somebody listens
        self._number = -1
        self._is_over = False

    def is_full(self) -> bool:
        """Whether nobody else may listen."""
        return len(self._listeners) >= MAX_LISTENERS

    def close(self) -> None:
        """End all streams, so that the server waits for none of them."""
        self._is_over = True
        self._wake()

    async def events(self) -> AsyncGenerator[ServerSentEvent]:
        """Yield the events for a page, until it goes or the server ends."""
        if self.is_full():  # since the route looked
            yield ServerSentEvent(retry=60_000)
            return
        woken = asyncio.Event()
        self._listeners.add(woken)
        if not self._tasks:
            self._number = self._door.index_written()
            self._tasks = [asyncio.create_task(work()) for work in (self._follow, self._ask)]
        sent: int | None = None
        try:
            yield ServerSentEvent(retry=1_000)
            while not self._is_over:
                woken.clear()
                if self._number == sent:
                    await woken.wait()
                else:
                    sent = self._number
                    yield ServerSentEvent(event="changed", data=sent)
        finally:
            self._listeners.discard(woken)
            if not self._listeners:
                for task in self._tasks:
                    task.cancel()
                self._tasks = []

    async def _follow(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            number = self._door.index_written()
            if number != self._number:
                self._number = number
                self._wake()

    async def _ask(self) -> None:
        while True:
            began = time.monotonic()
            with suppress(Refusal):  # the next question of a page says why
                await run_sync(self._door.ask, "health", {}, abandon_on_cancel=True)
            every = ASK_ALONE_SECONDS if self._door.is_alone() else ASK_SECONDS
            await asyncio.sleep(max(every, time.monotonic() - began))

    def _wake(self) -> None:
        for listener in self._listeners:
            listener.set()


def _room(request: Request) -> None:
    """Raise Refusal where too many pages listen."""
    if request.app.state.live.is_full():
        raise Refusal(503, f"{MAX_LISTENERS} pages listen already", "close some of them")


@routes.get("/page/live", response_class=EventSourceResponse, dependencies=[Depends(_room)])
async def live(request: Request) -> AsyncIterator[ServerSentEvent]:
    """Stream what changes; FastAPI sends a comment from time to time, and notices who is gone."""
    pages: Live = request.app.state.live
    async with aclosing(pages.events()) as events:
        async for event in events:
            yield event
