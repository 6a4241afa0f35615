"""The guard before every HTTP door: it refuses what no client of ours sends.

A web page that a developer opens can ask servers on this machine, under a name that its own DNS
points here (DNS rebinding), so Host and Origin have to be ours. Other users of the machine can, too,
so what changes files needs the token. A body is read to its end before the door has any of it: it has
a limit in size and one in time, and a door never sees half. No answer has CORS headers.

ASGI and the standard library, for any application.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

from vault_index.errors import VaultError

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


def token_alone(_scope: Scope, _secret: str) -> bool:
    """Accept no other secret than the token."""
    return False


@dataclass(frozen=True, slots=True)
class Rules:
    """The requests that pass."""

    hosts: frozenset[str]  # values of Host, with the port; empty: any, where each needs the token
    token: str  # "" matches no request
    every_request: bool = False  # needs the token
    needs_token: Callable[[Scope], bool] = is_write  # for the others: which of them
    accepts: Callable[[Scope, str], bool] = token_alone  # a request with another secret
    max_body: int = MAX_BODY


class _RefusedError(Exception):
    """A request that does not pass, with its status and the lines for its client."""

    def __init__(self, status: int, error: str, hint: str) -> None:
        super().__init__(error)
        self.status = status
        self.body = json.dumps({"error": error, "hint": hint}).encode()


def rules_for(
    host: str,
    port: int,
    token: str,
    *,
    needs_token: Callable[[Scope], bool] = is_write,
    accepts: Callable[[Scope, str], bool] = token_alone,
    max_body: int = MAX_BODY,
) -> Rules:
    """Return the rules of a server that listens at an address.

    Away from loopback each request needs the token, and no other secret will do. Raises VaultError for
    such an address without a token.
    """
    if is_loopback(host):
        return Rules(_with_port(LOOPBACK, port), token, False, needs_token, accepts, max_body)
    if not token:
        raise VaultError(
            f"{host} is open to other machines, which needs a token",
            "name a file that holds one: --token-file FILE",
        )
    named = () if host in ("", "0.0.0.0", "::") else (f"[{host}]" if ":" in host else host,)
    return Rules(_with_port(named, port), token, True, needs_token, max_body=max_body)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


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
            await _answer(refused, send)
            return
        await self._app(scope, _replaying(body, receive), send)

    def _check(self, scope: Scope) -> None:
        """Raise _RefusedError for a request that does not pass by its headers."""
        if _only(scope, b"content-length") and _only(scope, b"transfer-encoding"):
            raise _RefusedError(  # servers before this one may take the other for its end
                400,
                "a request has one length",
                "send Content-Length or Transfer-Encoding, not both",
            )
        host = _only(scope, b"host").lower()
        if not host or (self._rules.hosts and host not in self._rules.hosts):
            raise _RefusedError(
                421, "this server has another name", "ask it at the address that it listens on"
            )
        origin = _only(scope, b"origin").lower()
        is_own = not origin or origin in (f"http://{host}", f"https://{host}")
        if not is_own or _is_of_other_site(scope):
            raise _RefusedError(403, "pages of other sites may not ask this server", "use its own")
        if (self._rules.every_request or self._rules.needs_token(scope)) and not self._has_token(
            scope
        ):
            raise _RefusedError(
                401,
                "this needs the token",
                "send it as `Authorization: Bearer TOKEN`; it is in the file `token` of the "
                "server's user, in ~/.lessons",
            )
        if is_write(scope) and _has_body(scope) and not _is_json(_only(scope, b"content-type")):
            raise _RefusedError(
                415, "a body has to be JSON", "send `Content-Type: application/json`"
            )

    def _has_token(self, scope: Scope) -> bool:
        kind, _, given = _only(scope, b"authorization").partition(" ")
        expected = self._rules.token
        given = given.strip()
        same = hmac.compare_digest(given.encode("latin-1"), expected.encode("latin-1"))
        has_token = bool(expected) and same
        return kind.lower() == "bearer" and (has_token or self._rules.accepts(scope, given))


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


def _has_body(scope: Scope) -> bool:
    length = _only(scope, b"content-length")
    return bool(_only(scope, b"transfer-encoding")) or length not in ("", "0")


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


async def _answer(refused: _RefusedError, send: Send) -> None:
    """Send a refusal and end the connection: the rest of its request may still come."""
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(refused.body)).encode()),
        (b"connection", b"close"),
        (b"x-content-type-options", b"nosniff"),
    ]
    if refused.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": refused.body})
