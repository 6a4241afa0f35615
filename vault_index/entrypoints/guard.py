"""The guard and the socket of every HTTP door: they refuse what no client of ours sends.

A web page that a developer opens can ask servers on this machine, under a name that its own DNS
points here (DNS rebinding), so Host and Origin have to be ours. Other users of the machine can, too,
so what changes files needs the token. A body is read to its end before the door has any of it: it has
a limit in size and one in time, and a door never sees half. No answer has CORS headers.
"""

from __future__ import annotations

import asyncio
import hmac
import os
import re
import secrets
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import uvicorn
from starlette.responses import JSONResponse
from uvicorn.protocols.http.h11_impl import H11Protocol

from vault_index import files
from vault_index.errors import VaultError, WriteError
from vault_index.files import private
from vault_index.hotpath import index_files
from vault_index.model_http import is_this_machine

MAX_BODY = 1024 * 1024  # bytes of a request
BODY_SECONDS = 20.0  # for a whole body to arrive
SPARE_BYTES = 32 * 1024 * 1024  # of a body too large: read on, or its client never sees the answer
SPARE_SECONDS = 5.0
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
    # a request with another secret than the token
    accepts: Callable[[Scope, str], bool] = lambda _scope, _secret: False
    max_body: int = MAX_BODY


class _RefusedError(Exception):
    """A request that does not pass, with its status and the lines for its client."""

    def __init__(self, status: int, error: str, hint: str) -> None:
        super().__init__(error)
        headers = {"x-content-type-options": "nosniff"}
        headers["connection"] = "close"  # the rest of the request may still come
        if status == 401:
            headers["www-authenticate"] = "Bearer"
        self.response = JSONResponse({"error": error, "hint": hint}, status, headers)


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
        """Pass a request on to the application, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})  # before accepting: it is 403
            return
        try:
            self._check(scope)
            body = await _body(scope, receive, self._rules.max_body)
        except _RefusedError as refused:
            await refused.response(scope, receive, send)
            return
        await self._app(scope, _replaying(body, receive), send)

    def _check(self, scope: Scope) -> None:
        """Raise _RefusedError for a request that does not pass by its headers."""
        length, encoding = _only(scope, b"content-length"), _only(scope, b"transfer-encoding")
        if length and encoding:
            # servers before this one may take the other for its end
            hint = "send Content-Length or Transfer-Encoding, not both"
            raise _RefusedError(400, "a request has one length", hint)
        host = _only(scope, b"host").lower()
        if not host or (self._rules.hosts and host not in self._rules.hosts):
            hint = "ask it at the address that it listens on"
            raise _RefusedError(421, "this server has another name", hint)
        origin = _only(scope, b"origin").lower()
        is_own = not origin or origin in (f"http://{host}", f"https://{host}")
        if not is_own or _is_of_other_site(scope):
            raise _RefusedError(403, "pages of other sites may not ask this server", "use its own")
        given = secret_in(_only(scope, b"authorization"))
        is_token = is_same(given, self._rules.token)
        scope[HAS_TOKEN] = is_token or (bool(given) and self._rules.accepts(scope, given))
        needs_it = self._rules.every_request or self._rules.needs_token(scope)
        if needs_it and not scope[HAS_TOKEN]:
            raise _RefusedError(401, NO_TOKEN, TOKEN_HINT)
        has_body = encoding or length not in ("", "0")
        if is_write(scope) and has_body and not _is_json(_only(scope, b"content-type")):
            hint = "send `Content-Type: application/json`"
            raise _RefusedError(415, "a body has to be JSON", hint)


def secret_in(authorization: str) -> str:
    """Return the secret of a header `Authorization: Bearer SECRET`, "" for any other."""
    kind, _, given = authorization.partition(" ")
    return given.strip() if kind.lower() == "bearer" else ""


def is_same(given: str, token: str) -> bool:
    """Whether a secret is the token, in a time that says nothing about it; "" is no token."""
    return bool(token) and hmac.compare_digest(given.encode(), token.encode())


def _only(scope: Scope, name: bytes) -> str:
    """Return a header, "" without it. Raises _RefusedError for two: readers differ in which counts."""
    values = [value for key, value in scope["headers"] if key.lower() == name]
    if len(values) > 1:
        raise _RefusedError(400, f"two headers {name.decode()}", "send one")
    return values[0].decode("latin-1").strip() if values else ""


def _is_of_other_site(scope: Scope) -> bool:
    """Whether a browser says that another site's page asks, and not for a link that its user follows.

    Images, scripts and frames of a page come without Origin, and each would search.
    """
    is_followed = not is_write(scope) and _only(scope, b"sec-fetch-dest") == "document"
    return _only(scope, b"sec-fetch-site") in ("cross-site", "same-site") and not is_followed


def _is_json(content_type: str) -> bool:
    kind, *parameters = (part.strip().lower() for part in content_type.split(";"))
    charsets = [part for part in parameters if part.startswith("charset=")]
    return kind == "application/json" and all(
        charset.removeprefix("charset=").strip('"') == "utf-8" for charset in charsets
    )


async def _body(scope: Scope, receive: Receive, limit: int) -> bytes:
    """Read a whole body. Raises _RefusedError if it is too large or takes too long."""
    parts: list[bytes] = []
    size = 0
    declared = _only(scope, b"content-length")
    is_too_large = declared.isdecimal() and int(declared) > limit
    try:
        async with asyncio.timeout(SPARE_SECONDS if is_too_large else BODY_SECONDS) as time_limit:
            while True:
                message = await receive()
                if message["type"] != "http.request":  # gone: the application is not begun
                    raise _RefusedError(400, "the request ended early", "send it again")
                part = message.get("body", b"")
                size += len(part)
                if size > limit and not is_too_large:
                    is_too_large = True
                    time_limit.reschedule(asyncio.get_running_loop().time() + SPARE_SECONDS)
                if is_too_large:
                    parts.clear()
                else:
                    parts.append(part)
                if not message.get("more_body") or size > limit + SPARE_BYTES:
                    break
    except TimeoutError:
        if not is_too_large:
            raise _RefusedError(408, "the request took too long", "send it again") from None
    if is_too_large:
        raise _RefusedError(413, f"a request has at most {limit} bytes", "send less at once")
    return b"".join(parts)


def _replaying(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that has a body in one message, and then what follows."""
    is_read = False

    async def replay() -> Message:
        nonlocal is_read
        if is_read:
            return await receive()
        is_read = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


# The socket that an HTTP door listens on, and what holds for each connection to it.
#
# A connection whose request is not there yet costs its client nothing, so it is ended: after some
# seconds, and at once where there are too many such, the longest waiting first.

BACKLOG = 128  # connections that wait to be accepted, and that are accepted at once
MAX_WAITING = 128  # connections without a whole request: half of the files of a process on macOS
HEAD_SECONDS = 10.0  # for the head of a request, from the connection or the answer before it


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens at an address; port 0 takes a free one. Raises VaultError."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        ours = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        why = f"cannot listen on {host}:{port}: {reason.lower()}"
        raise VaultError(why, "choose another --port") from None
    # asyncio does so only for sockets it made itself; an answer in two parts then waits 40 ms
    ours.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return ours


def settings(app: App, **options: Any) -> uvicorn.Config:
    """Return the settings of a server for an application behind its guard."""
    return uvicorn.Config(
        app, http=Connection, access_log=False, server_header=False, backlog=BACKLOG, **options
    )


class Connection(H11Protocol):
    """A connection that does not wait for its client for long. One server per process has them."""

    _waiting: ClassVar[dict[Connection, None]] = {}  # the longest waiting first; some wait no more
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._wait()
        while len(self._waiting) > MAX_WAITING:
            oldest = next(iter(self._waiting))
            del self._waiting[oldest]
            if oldest._is_waiting():
                oldest.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        super().connection_lost(exc)
        self._waiting.pop(self, None)
        if self._deadline is not None:
            self._deadline.cancel()

    def on_response_complete(self) -> None:
        """Begin to wait for the next request, which may be here already."""
        self._wait()
        super().on_response_complete()

    def _wait(self) -> None:
        self._waiting.pop(self, None)
        self._waiting[self] = None
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self.loop.call_later(HEAD_SECONDS, self._end_without_head, self.cycle)

    def _end_without_head(self, before: object) -> None:
        if self.cycle is before and not self.transport.is_closing():
            self.transport.close()

    def _is_waiting(self) -> bool:
        """Whether the client has to send something, and nothing is being sent to it."""
        is_answering = self.cycle is not None and not (
            self.cycle.response_complete or self.cycle.more_body
        )
        return not is_answering and not self.transport.get_write_buffer_size()


# The token that HTTP clients send: a file of the user's folder that only its user reads.

FILE = "token"
MAX_BYTES = 1024
_TOKEN = re.compile(rb"[!-~]{16,256}")  # what a header can hold, and nobody guesses


def load_token(home: Path) -> str:
    """Return the token in a user's folder, made if it is missing. Raises VaultError, WriteError."""
    file = home / FILE
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = os.open(home, os.O_RDONLY | os.O_DIRECTORY)  # the user's may be a link
        try:
            handle = index_files.open_in(folder, FILE, os.O_RDWR | os.O_CREAT)
        finally:
            os.close(folder)
    except OSError as error:
        hint = "make it a file of yours, or remove it"
        raise WriteError(f"cannot write {file}: {error.strerror}", hint) from None
    with private.hold(handle):  # another door may be making it
        os.fchmod(handle, 0o600)
        written = os.pread(handle, MAX_BYTES, 0).strip()
        if not written:
            written = secrets.token_urlsafe(32).encode()
            os.pwrite(handle, written + b"\n", 0)
            os.fsync(handle)
        return _checked(written, file)


def read_token(file: Path) -> str:
    """Return the token in a file that the user names. Raises VaultError."""
    return _checked(files.read_file(file).strip(), file)


def _checked(written: bytes, file: Path) -> str:
    if not _TOKEN.fullmatch(written):
        why = f"{file} holds no token: 16 to 256 characters without a space"
        raise VaultError(why, "remove it, or write one into it")
    return written.decode()
