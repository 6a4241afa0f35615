"""The application: the routes of one vault, their errors, and `/openapi.json`, which describes them."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from importlib.metadata import version
from typing import Annotated, Any

from anyio.to_thread import current_default_thread_limiter, run_sync
from fastapi import APIRouter, Body, FastAPI, Request
from fastapi.responses import HTMLResponse
from fastapi.sse import EventSourceResponse, ServerSentEvent

from vault_index import api, features
from vault_index.entrypoints import guard
from vault_index.entrypoints.guard import Scope, is_write
from vault_index.entrypoints.web import (
    activity,
    home,
    lessons,
    refusal,
    render,
    search,
    vault,
    writing,
)
from vault_index.entrypoints.web.refusal import Refusal
from vault_index.entrypoints.web.vault_client import VaultClient
from vault_index.watch.current import AT_ONCE

# Open pages hear of changes: server-sent events.
#
#     GET /page/live   event: changed, data: when the index was written, in ns; first as it is now
#
# The index's manifest is written once for each change, whoever makes it, so a look at its stamp follows
# the watcher, a command and a `git pull` alike. Nobody looks while no page listens. A question from time
# to time has the watcher run, and has this process notice saves where none may run.
#
# The journal and proposals have no event: an EventSource sends no key, and the moments at which
# somebody works are not for others on the machine.
LOOK_SECONDS = 0.3  # a stat each time
ASK_SECONDS = 60.0  # a watcher ends after a day without a question, and may be killed
ASK_ALONE_SECONDS = 2.5  # where each question looks for saves itself

live_routes = APIRouter(include_in_schema=False)


class Live:
    """The pages that listen to one vault."""

    def __init__(self, client: VaultClient) -> None:
        self.client = client
        self._asked = 0.0
        self._asking: asyncio.Task[None] | None = None

    def ask_at_times(self) -> None:
        """Begin a question, if the last one was a while ago: one for all pages."""
        every = ASK_ALONE_SECONDS if self.client.is_alone() else ASK_SECONDS
        is_asking = self._asking is not None and not self._asking.done()
        if not is_asking and time.monotonic() - self._asked >= every:
            self._asked = time.monotonic()
            self._asking = asyncio.create_task(self._ask())

    async def _ask(self) -> None:
        with suppress(Refusal):  # the next question of a page says why
            await run_sync(lambda: self.client.ask(api.search.health()), abandon_on_cancel=True)


@live_routes.get("/page/live", response_class=EventSourceResponse)
async def live(request: Request) -> AsyncIterator[ServerSentEvent]:
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


docs_routes = APIRouter(include_in_schema=False)


@docs_routes.get("/docs")
def docs(request: Request) -> HTMLResponse:
    """Show the routes."""
    routes = list(described(request.app))
    return render.page("docs.html", at="", title="Routes", routes=routes, wide=True)


def described(app: FastAPI) -> Iterator[tuple[str, str, list[str], list[str]]]:
    """Yield each route of an application, what it does, and the fields that it takes and answers."""
    openapi = app.openapi()

    def fields(part: Mapping[str, Any]) -> list[str]:
        schema = part.get("content", {}).get("application/json", {}).get("schema", {})
        names = (each.get("$ref", "").rpartition("/")[2] for each in schema.get("anyOf", [schema]))
        schemas = (openapi["components"]["schemas"].get(name, {}) for name in names)
        return list(
            dict.fromkeys(field for each in schemas for field in each.get("properties", ()))
        )

    for path, methods in openapi["paths"].items():
        for method, route in methods.items():
            taken = [each["name"] for each in route.get("parameters", ()) if each["in"] == "query"]
            taken = fields(route.get("requestBody", {})) or taken
            about = " ".join(route["description"].partition("\n\n")[0].split())
            yield f"{method.upper()} {path}", about, taken, fields(route["responses"]["200"])


# Threads that ask: as many as the watcher answers at once, and one more. The other requests wait in
# their order, where threads would pass each other.
THREADS = AT_ONCE + 1
MAX_BODY = 8 * 1024 * 1024  # bytes: a bulk of a thousand pages
QUERY = "/api/query"
PRIVATE = "/page/private/"  # fragments of pages with what only the user of this machine may read


@asynccontextmanager
async def _limited(_app: FastAPI) -> AsyncIterator[None]:
    current_default_thread_limiter().total_tokens = THREADS
    yield


def application(
    client: VaultClient, note: Callable[[str], None], keys: PageKeys | None = None
) -> FastAPI:
    """Return the application for a vault; `note` takes a line about each bug.

    Without `keys` no page gets one: each request needs the token then.
    """
    app = FastAPI(
        title="Lessons",
        description="The lessons of a team, and the journal of its user.",
        version=version("lessons-vault"),
        docs_url=None,  # whose script is on another host: `docs_routes`
        redoc_url=None,
        responses={"4XX": {"model": refusal.REFUSED, "description": "Refused"}},
        redirect_slashes=False,
        lifespan=_limited,
    )
    app.state.client = client
    app.add_middleware(render.WithName, name=client.root.name)
    app.state.live = Live(client)
    app.state.keys = keys
    refusal.add_handlers(app, note, render.refused)
    of_lessons = (lessons.query_routes, lessons.routes, lessons.page_routes)
    of_pages = (each.routes for each in (render, home, writing, search, activity, vault))
    core = (*of_lessons, *of_pages, live_routes, docs_routes, *([key_routes] if keys else ()))
    added = (routes for feature in features.FEATURES for routes in feature.routes())
    for routes in (*core, *added):
        app.include_router(routes)
    return app


_PRIVATE_ROUTES = tuple(each.private for each in features.FEATURES if each.private)


def needs_token(scope: Scope) -> bool:
    """Whether a request needs the token: it writes, or reads what only its user may read.

    A query is a POST that reads, and a page that asks for its key has none yet. Lessons are what a team
    shares; the journal's files are 0600, and other users of this machine can ask a port of it.
    """
    path = str(scope["path"])
    if path.startswith((*_PRIVATE_ROUTES, PRIVATE)):
        return True
    is_exchange = (scope["method"], path) == ("POST", EXCHANGE)
    return is_write(scope) and path != QUERY and not is_exchange


# The key of the pages: from the command line into its user's browser, good while this server runs.
#
#     lessons open   opens  /#once=CODE   a code is good once, for two minutes: see `guard`
#     page.js   POST /page/key {"code": CODE}  ->  {"key": KEY}, which the browser keeps
#
# The token never enters the browser. A code that comes a second time takes back the key that it was
# exchanged for.
EXCHANGE = "/page/key"
TAKEN_BACK = b"-"  # no hash
_OPEN = "open the page from a terminal: lessons open"

key_routes = APIRouter(include_in_schema=False)


class PageKeys:
    """The keys of the pages of a server at an address, which has the token."""

    def __init__(self, token: str, address: str) -> None:
        self._signed_for = (token, address)
        self._keys: dict[str, bytes] = {}  # a code that was used -> the hash of its key

    def exchange(self, code: str, key: str) -> str:
        """Return the key for a code; `key` is the one that the page has already, or "".

        Raises Refusal, and takes the key back, where another page exchanged the code before.
        """
        if code not in self._keys:
            if not guard.is_good_code(code, *self._signed_for):
                raise Refusal(403, "the key of this address is too old", _OPEN)
            made = secrets.token_urlsafe(32)
            self._keys[code] = _hash(made)
            return made
        if self._keys[code] == _hash(key):  # opened again by its page
            return key
        self._keys[code] = TAKEN_BACK
        why = "this address was opened before, so the key that it was good for is taken back"
        raise Refusal(403, why, _OPEN)

    def accepts(self, secret: str) -> bool:
        return _hash(secret) in self._keys.values()


@key_routes.post(EXCHANGE)
async def exchange(
    request: Request, code: Annotated[str, Body(embed=True, max_length=100)]
) -> dict[str, str]:
    """Exchange a code, as it was in the address, for a key. Raises Refusal."""
    given = request.headers.get("authorization", "").removeprefix("Bearer ").strip()
    return {"key": request.app.state.keys.exchange(code, given)}


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "replace")).digest()
