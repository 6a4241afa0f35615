"""The application: the routes of one vault, their errors, and `/openapi.json`, which describes them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from anyio.to_thread import current_default_thread_limiter
from fastapi import FastAPI

from vault_index.entrypoints.guard import Scope, is_write
from vault_index.entrypoints.web import (
    answers,
    journal,
    live,
    page_key,
    queries,
    refusal,
    writes,
)
from vault_index.entrypoints.web.pages import (
    agents,
    ask,
    journal_page,
    lesson,
    render,
    review,
    search,
    vault,
)
from vault_index.entrypoints.web.shapes import Error
from vault_index.watch.questions import AT_ONCE

if TYPE_CHECKING:
    from vault_index.entrypoints.web.door import Door
    from vault_index.entrypoints.web.page_key import PageKeys

# Threads that ask: as many as the watcher answers at once, and one more. The other requests wait in
# their order, where threads would pass each other.
THREADS = AT_ONCE + 1
MAX_BODY = 8 * 1024 * 1024  # bytes: a bulk of a thousand pages
QUERY = "/api/query"
PRIVATE = "/page/private/"  # fragments of pages with what only the user of this machine may read
PAGES = (
    live.routes,
    render.routes,
    search.routes,
    ask.routes,
    lesson.routes,
    vault.document_routes,
    agents.routes,
    journal_page.routes,
    review.routes,
    vault.routes,
)
REFUSALS: dict[int | str, dict[str, Any]] = {"4XX": {"model": Error}, "5XX": {"model": Error}}


@asynccontextmanager
async def _limited(_app: FastAPI) -> AsyncIterator[None]:
    current_default_thread_limiter().total_tokens = THREADS
    yield


def application(door: Door, note: Callable[[str], None], keys: PageKeys | None = None) -> FastAPI:
    """Return the application for a vault; `note` takes a line about each bug.

    Without `keys` no page gets one: each request needs the token then.
    """
    app = FastAPI(
        title="Lessons",
        description="The lessons of a team, and the journal of its user.",
        version=version("vault-index"),
        docs_url=None,  # its script is on another host
        redoc_url=None,
        redirect_slashes=False,
        lifespan=_limited,
        responses=REFUSALS,
    )
    app.state.door = door
    app.state.live = live.Live(door)
    app.state.keys = keys
    refusal.add_handlers(app, note, render.refused)
    for routes in (queries.routes, answers.routes, writes.routes, journal.routes, *PAGES):
        app.include_router(routes)
    if keys is not None:
        app.include_router(page_key.routes)

    return app


def needs_token(scope: Scope) -> bool:
    """Whether a request needs the token: it writes, or reads what only its user may read.

    A query is a POST that reads, and a page that asks for its key has none yet. Lessons are what a team
    shares; the journal's files are 0600, and other users of this machine can ask a port of it.
    """
    path = str(scope["path"])
    if path.startswith((journal.PREFIX, PRIVATE)):
        return True
    is_exchange = (scope["method"], path) == ("POST", page_key.EXCHANGE)
    return is_write(scope) and path != QUERY and not is_exchange
