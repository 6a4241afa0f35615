"""The application: the routes of one vault, their errors, and `/openapi.json`, which describes them."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import secrets
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from importlib.metadata import version
from typing import Annotated, Any
from urllib.parse import urlsplit

from anyio.to_thread import current_default_thread_limiter, run_sync
from fastapi import APIRouter, Body, Depends, FastAPI, Query, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent

from vault_index import api, features
from vault_index.entrypoints.guard import Scope, is_write
from vault_index.entrypoints.web import (
    agents,
    lessons,
    refusal,
    render,
    search,
    today,
    vault,
    writing,
)
from vault_index.entrypoints.web.refusal import Refusal
from vault_index.entrypoints.web.shapes import Error
from vault_index.entrypoints.web.vault_client import VaultClient
from vault_index.errors import VaultError
from vault_index.watch.vault_watch import AT_ONCE

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
MAX_LISTENERS = 100

live_routes = APIRouter(include_in_schema=False)


class Live:
    """The pages that listen to one vault."""

    def __init__(self, client: VaultClient) -> None:
        self.client = client
        self.listeners = 0
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


def _room(request: Request) -> None:
    """Raise Refusal where too many pages listen."""
    if request.app.state.live.listeners >= MAX_LISTENERS:
        raise Refusal(503, f"{MAX_LISTENERS} pages listen already", "close some of them")


@live_routes.get("/page/live", response_class=EventSourceResponse, dependencies=[Depends(_room)])
async def live(request: Request) -> AsyncIterator[ServerSentEvent]:
    """Stream what changes, until the page goes or the server ends.

    FastAPI sends a comment from time to time, and notices who is gone.
    """
    pages: Live = request.app.state.live
    if pages.listeners >= MAX_LISTENERS:  # since `_room` looked
        yield ServerSentEvent(retry=60_000)
        return
    pages.listeners += 1
    sent: int | None = None
    try:
        yield ServerSentEvent(retry=1_000)
        while not pages.client.is_ending:
            number = pages.client.index_written()
            if number != sent:
                sent = number
                yield ServerSentEvent(event="changed", data=sent)
            pages.ask_at_times()
            await asyncio.sleep(LOOK_SECONDS)
    finally:
        pages.listeners -= 1


# Threads that ask: as many as the watcher answers at once, and one more. The other requests wait in
# their order, where threads would pass each other.
THREADS = AT_ONCE + 1
MAX_BODY = 8 * 1024 * 1024  # bytes: a bulk of a thousand pages
QUERY = "/api/query"
PRIVATE = "/page/private/"  # fragments of pages with what only the user of this machine may read
REFUSALS: dict[int | str, dict[str, Any]] = {"4XX": {"model": Error}, "5XX": {"model": Error}}


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
        docs_url=None,  # its script is on another host
        redoc_url=None,
        redirect_slashes=False,
        lifespan=_limited,
        responses=REFUSALS,
    )
    app.state.client = client
    app.add_middleware(render.WithName, name=client.root.name)
    app.state.live = Live(client)
    app.state.keys = keys
    refusal.add_handlers(app, note, render.refused)
    of_lessons = (lessons.query_routes, lessons.routes, lessons.page_routes)
    of_pages = (each.routes for each in (render, today, writing, search, agents, vault))
    core = (*of_lessons, *of_pages, live_routes, *([key_routes] if keys else ()))
    for routes in (*core, *features.adding("routes")):
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
#     lessons serve --open   opens  /#once=CODE   a code is good once, for two minutes
#     page.js   POST /page/key {"code": CODE}  ->  {"key": KEY}, which the browser keeps
#
# The token never enters the browser. Everybody on the machine can read in the list of
# processes what a browser is started with: so the address holds no key, and a code that comes a second
# time takes back the key that it was exchanged for. The fragment of an address is in no request.
#
# Where this server runs already, `lessons serve --open` asks it for a code. It first has it prove that it
# has the token, as any program could listen on that port.

EXCHANGE, NEW_CODE, PROOF = "/page/key", "/page/code", "/page/proof"
CODE_SECONDS = 120.0  # from the command line to the page
MAX_CODES = 1000  # the oldest goes, and its key
TAKEN_BACK = b"-"  # no hash
ANSWER_SECONDS = 5.0  # for a server that may be another program
_OPEN = "open the page from a terminal: lessons serve --open"

key_routes = APIRouter(include_in_schema=False)


@dataclass(slots=True)
class _Code:
    until: float
    key: bytes = b""  # the hash of the key that it was exchanged for, or TAKEN_BACK


class PageKeys:
    """The codes and keys of one server, as hashes; `root` is the folder of its vault."""

    def __init__(self, token: str, root: str) -> None:
        self.root = root
        self.token = token
        self._codes: dict[bytes, _Code] = {}

    def new_code(self) -> str:
        """Return a code that a page can exchange for a key."""
        code = secrets.token_urlsafe(24)
        self._codes[_hash(code)] = _Code(time.monotonic() + CODE_SECONDS)
        while len(self._codes) > MAX_CODES:
            del self._codes[next(iter(self._codes))]
        return code

    def exchange(self, code: str, key: str) -> str:
        """Return the key for a code; `key` is the one that the page has already, or "".

        Raises Refusal, and takes the key back, where another page exchanged the code before.
        """
        entry = self._codes.get(_hash(code))
        if entry is None or (not entry.key and time.monotonic() > entry.until):
            raise Refusal(403, "the key of this address is too old", _OPEN)
        if not entry.key:
            made = secrets.token_urlsafe(32)
            entry.key = _hash(made)
            return made
        if entry.key == _hash(key):  # opened again by its page
            return key
        entry.key = TAKEN_BACK
        why = "this address was opened before, so the key that it was good for is taken back"
        raise Refusal(403, why, _OPEN)

    def accepts(self, scope: Scope, secret: str) -> bool:
        """Whether a request may come with a key: any that does not ask for another key."""
        keys = {entry.key for entry in self._codes.values()}
        return scope["path"] != NEW_CODE and _hash(secret) in keys


Name = Annotated[str, Body(embed=True, max_length=100)]


@key_routes.post(EXCHANGE)
async def exchange(request: Request, code: Name) -> dict[str, str]:
    """Exchange a code, as it was in the address, for a key. Raises Refusal."""
    given = request.headers.get("authorization", "").removeprefix("Bearer ").strip()
    return {"key": _keys_of(request).exchange(code, given)}


@key_routes.post(NEW_CODE)
async def new_code(request: Request) -> dict[str, str]:
    """Return a new code, and the folder of the vault: for whoever has the token."""
    keys = _keys_of(request)
    return {"code": keys.new_code(), "root": keys.root}


@key_routes.get(PROOF)
async def prove(
    request: Request, nonce: Annotated[str, Query(pattern="^[0-9a-f]{32,64}$")]
) -> dict[str, str]:
    """Prove that this server has the token of its user."""
    return {"proof": _proof(_keys_of(request).token, nonce, *request.scope["server"])}


def ask_running(address: str, token: str, root: str) -> str:
    """Return a code of our own server at an address; "" where no such server is.

    Raises VaultError where it serves another vault.
    """
    nonce = secrets.token_hex(16)
    parts = urlsplit(address)
    expected = _proof(token, nonce, parts.hostname or "", parts.port or 80)
    proof = str(_asked(address, "GET", f"{PROOF}?nonce={nonce}").get("proof", ""))
    if not hmac.compare_digest(proof.encode(), expected.encode()):
        return ""
    answer = _asked(address, "POST", NEW_CODE, token)
    if answer.get("root") != root:
        raise VaultError(f"{address} serves {answer.get('root')}", "choose another --port")
    return str(answer["code"])


def _asked(address: str, method: str, path: str, token: str = "") -> dict[str, Any]:
    """Return the JSON object that a server of this machine answers; {} without."""
    parts = urlsplit(address)
    line = HTTPConnection(parts.hostname or "", parts.port or 80, timeout=ANSWER_SECONDS)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    with suppress(OSError, HTTPException, ValueError), closing(line):
        line.request(method, path, headers=headers)
        answer = line.getresponse()
        said = json.loads(answer.read(10_000)) if answer.status == 200 else {}
        return said if isinstance(said, dict) else {}
    return {}


def _keys_of(request: Request) -> PageKeys:
    keys: PageKeys = request.app.state.keys
    return keys


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "replace")).digest()


def _proof(token: str, nonce: str, host: str, port: int) -> str:
    """Return what only a holder of the token knows; another address has another proof."""
    text = f"the page of lessons serve, {host}, {port}, {nonce}"
    return hmac.new(token.encode(), text.encode(), "sha256").hexdigest()
