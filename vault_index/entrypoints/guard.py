"""The guard and the socket of every HTTP door: they refuse what no client of ours sends.

A web page can ask servers on this machine, under a name that its DNS points here (DNS rebinding), so
Host and Origin must be ours. Other users of the machine can ask, too, so a write needs the token. No
answer has CORS headers. Connections are uvicorn's.
"""

from __future__ import annotations

import asyncio
import hmac
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

import h11
import uvicorn
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from uvicorn.protocols.http.h11_impl import H11Protocol

from vault_index.errors import VaultError
from vault_index.model_http import is_this_machine

MAX_BODY = 1024 * 1024  # bytes of a request
MAX_CONNECTIONS = 128  # at once: half of the files of a process on macOS
REQUEST_SECONDS = 30.0  # for a client to send a request
READS = frozenset({"GET", "HEAD", "OPTIONS"})
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


def is_write(scope: Scope) -> bool:
    """Whether a request may change something, by its method."""
    return scope["method"] not in READS


HAS_TOKEN = "lessons.has_token"  # of a request's scope, for what a part of its answer needs
NO_TOKEN = "this needs the token"
TOKEN_HINT = (
    "send it as `Authorization: Bearer TOKEN`; it is in the file `token` of the server's user, in"
    " ~/.lessons"
)


@dataclass(frozen=True, slots=True)
class Rules:
    """The requests that pass."""

    hosts: frozenset[str]  # values of Host, with the port; empty: any, where each needs the token
    token: str  # "" matches no request
    every_request: bool = False  # needs the token
    needs_token: Callable[[Scope], bool] = is_write  # for the others: which of them
    accepts: Callable[[str], bool] = lambda _secret: False  # another secret than the token
    max_body: int = MAX_BODY


def rules_for(host: str, port: int, token: str) -> Rules:
    """Return the rules of a server that listens at an address.

    Away from loopback each request needs the token. Raises VaultError for such an address without one.
    """
    if is_this_machine(host):
        return Rules(_with_port(LOOPBACK, port), token)
    if not token:
        hint = "name a file that holds one: --token-file FILE"
        raise VaultError(f"{host} is open to other machines, which needs a token", hint)
    named = () if host in ("", "0.0.0.0", "::") else (f"[{host}]" if ":" in host else host,)
    return Rules(_with_port(named, port), token, every_request=True)


def address_of(host: str, port: int) -> str:
    """Return the address of a server."""
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def _with_port(names: tuple[str, ...], port: int) -> frozenset[str]:
    """Return names as Host has them: a client leaves out the port that http has by default."""
    bare = set(names) if port == 80 else set()
    return frozenset({f"{name.lower()}:{port}" for name in names} | bare)


class Guard:
    """An application behind rules: a request that breaks one gets JSON, `error` and `hint`."""

    def __init__(self, app: App, rules: Rules) -> None:
        self._app = app
        self._rules = rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = None if scope["type"] == "lifespan" else self._refusal(scope)
        if refusal and refusal.status_code == 413:
            while (await receive()).get("more_body"):
                pass  # its client sees no answer before all is sent
        await (refusal or self._app)(scope, receive, send)

    def _refusal(self, scope: Scope) -> JSONResponse | None:
        headers, rules = Headers(scope=scope), self._rules
        host, origin = headers.get("host", "").lower(), headers.get("origin", "").lower()
        if not host or (rules.hosts and host not in rules.hosts):
            hint = "ask it at the address that it listens on"
            return _refused(421, "this server has another name", hint)
        is_foreign = bool(origin) and origin not in (f"http://{host}", f"https://{host}")
        if is_foreign or _is_of_other_site(scope, headers):
            return _refused(403, "pages of other sites may not ask this server", "use its own")
        kind, _, given = headers.get("authorization", "").partition(" ")
        given = given.strip() if kind.lower() == "bearer" else ""
        is_token = bool(rules.token) and hmac.compare_digest(given.encode(), rules.token.encode())
        scope[HAS_TOKEN] = is_token or (bool(given) and rules.accepts(given))
        if not scope[HAS_TOKEN] and (rules.every_request or rules.needs_token(scope)):
            return _refused(401, NO_TOKEN, TOKEN_HINT)
        has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
        if is_write(scope) and has_body and not _is_json(headers.get("content-type", "")):
            return _refused(415, "a body has to be JSON", "send `Content-Type: application/json`")
        if "transfer-encoding" in headers:
            return _refused(411, "a body has to say its length", "send `Content-Length`")
        if int(headers.get("content-length", "0")) > rules.max_body:
            return _refused(
                413, f"a request has at most {rules.max_body} bytes", "send less at once"
            )
        return None


def _refused(status: int, error: str, hint: str) -> JSONResponse:
    headers = {
        "x-content-type-options": "nosniff",
        "connection": "close",
    }  # the rest may still come
    if status == 401:
        headers["www-authenticate"] = "Bearer"
    return JSONResponse({"error": error, "hint": hint}, status, headers)


def _is_of_other_site(scope: Scope, headers: Headers) -> bool:
    """Whether another site's page asks, such as by an image, and not for a link that its user follows."""
    is_followed = not is_write(scope) and headers.get("sec-fetch-dest") == "document"
    return headers.get("sec-fetch-site") in ("cross-site", "same-site") and not is_followed


def _is_json(content_type: str) -> bool:
    kind, *parameters = (part.strip().lower() for part in content_type.split(";"))
    charsets = [part for part in parameters if part.startswith("charset=")]
    return kind == "application/json" and all(
        charset.removeprefix("charset=").strip('"') == "utf-8" for charset in charsets
    )


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens at an address; port 0 takes a free one. Raises VaultError."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        ours = socket.create_server((host, port), family=family, backlog=MAX_CONNECTIONS)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        why = f"cannot listen on {host}:{port}: {reason.lower()}"
        raise VaultError(why, "end what listens there, or choose another --port") from None
    # asyncio does so only for sockets it made itself; an answer in two parts then waits 40 ms
    ours.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return ours


def settings(app: App, **options: Any) -> uvicorn.Config:
    """Return the settings of a server for an application behind its guard.

    h11 refuses a request with two names or two lengths, and a head over 64 KB.
    """
    limits = {"limit_concurrency": MAX_CONNECTIONS, "backlog": MAX_CONNECTIONS}
    options |= {"access_log": False, "server_header": False, **limits}
    return uvicorn.Config(app, http=TimedConnection, ws="none", **options)


class TimedConnection(H11Protocol):
    """A connection that is closed unless its client sends a whole request in time.

    uvicorn waits for ever, so 128 clients that send half a head would keep all others out. When half
    of those are open, the one that has waited longest makes room for a new one.
    """

    _patience: asyncio.TimerHandle | None = None  # while a request is waited for

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        super().connection_made(transport)
        self._wait()
        if len(self.connections) > MAX_CONNECTIONS // 2:
            waiting = {
                each._patience.when(): each
                for each in self.connections
                if isinstance(each, TimedConnection) and each._patience is not None
            }
            waiting[min(waiting)]._hang_up()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._stop_waiting()
        elif self._patience is None:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._patience = self.loop.call_later(REQUEST_SECONDS, self._hang_up)

    def _stop_waiting(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _hang_up(self) -> None:
        self._stop_waiting()
        self.transport.abort()
