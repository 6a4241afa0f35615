"""Open pages hear of changes: server-sent events.

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
from collections.abc import AsyncIterator
from contextlib import suppress

from anyio.to_thread import run_sync
from fastapi import APIRouter, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent

from vault_index import api
from vault_index.entrypoints.web.refusal import Refusal
from vault_index.entrypoints.web.vault_client import VaultClient

LOOK_SECONDS = 0.3  # a stat each time
ASK_SECONDS = 60.0  # a watcher ends after a day without a question, and may be killed
ASK_ALONE_SECONDS = 2.5  # where each question looks for saves itself

routes = APIRouter(include_in_schema=False)


class Live:
    """The pages that listen to one vault."""

    def __init__(self, client: VaultClient) -> None:
        self.client = client
        self._asked_at = 0.0
        self._asking: asyncio.Task[None] | None = None

    def ask_at_times(self) -> None:
        """Begin a question, if the last one was a while ago: one for all pages."""
        pause = ASK_ALONE_SECONDS if self.client.is_alone() else ASK_SECONDS
        is_asking = self._asking is not None and not self._asking.done()
        if not is_asking and time.monotonic() - self._asked_at >= pause:
            self._asked_at = time.monotonic()
            self._asking = asyncio.create_task(self._ask())

    async def _ask(self) -> None:
        with suppress(Refusal):  # the next question of a page says why
            await run_sync(lambda: self.client.ask(api.search.health()), abandon_on_cancel=True)


@routes.get("/page/live", response_class=EventSourceResponse)
async def changes(request: Request) -> AsyncIterator[ServerSentEvent]:
    """Stream what changes, until the page goes or the server ends.

    FastAPI sends a comment from time to time, and notices who is gone.
    """
    pages: Live = request.app.state.live
    sent: int | None = None
    yield ServerSentEvent(retry=1_000)
    while not pages.client.is_ending:
        number = pages.client.index_written()
        if number != sent:
            sent = number
            yield ServerSentEvent(event="changed", data=sent)
        pages.ask_at_times()
        await asyncio.sleep(LOOK_SECONDS)
