"""Requests to the server of a model, whose answers nobody vouches for.

A redirect is not followed: what is asked holds a user's text, and often a key. An answer has a limit in
time, in size and in the size of a line. A server of this machine is asked without a proxy.
"""

from __future__ import annotations

import ipaddress
import re
import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ssl

    import httpx

CONNECT_SECONDS = 10.0
MAX_BYTES = 32 * 1024 * 1024  # of an answer: a token of a stream has some 300 bytes around it
MAX_LINE_BYTES = 8 * 1024 * 1024  # 32 vectors of 8,192 numbers are one line of 7 MB


class TooLargeError(Exception):
    """An answer, or a line of it, that is larger than any of a model; its text says so."""


def options(
    host: str, timeout: float, follow: Callable[[httpx.Request], None] | None = None
) -> dict[str, Any]:
    """Return the options of an httpx client that asks a host and has `timeout` seconds for an answer.

    `follow` takes each request before it is sent. While an answer is read, httpx.ReadTimeout and
    TooLargeError are raised for what breaks the rule.
    """
    import httpx  # 80 ms

    def begin(request: httpx.Request) -> None:
        request.headers["Accept-Encoding"] = "identity"
        if request.url.scheme == "http" and not is_this_machine(request.url.host):
            # OLLAMA_API_KEY, which its client sends anywhere
            request.headers.pop("authorization", None)
        request.extensions["until"] = time.monotonic() + timeout
        if follow is not None:
            follow(request)

    def bound(response: httpx.Response) -> None:
        response.headers.pop("content-encoding", None)  # unasked for, and unpacked it has no limit
        assert isinstance(response.stream, httpx.SyncByteStream)
        response.stream = _bounded(response.stream, response.request.extensions["until"])

    return {
        "timeout": httpx.Timeout(timeout, connect=min(CONNECT_SECONDS, timeout)),
        "verify": _certificates(),
        "trust_env": not is_this_machine(host),
        "follow_redirects": False,
        "event_hooks": {"request": [begin], "response": [bound]},
    }


def asked(address: str) -> str:
    """Return the address at which to ask a server that may listen on 0.0.0.0."""
    return re.sub(r"(?<![\w.])0\.0\.0\.0(?![\w.])", "127.0.0.1", address)


def is_this_machine(host: str) -> bool:
    """Whether a host is a loopback address, by its number or as localhost."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


@lru_cache(maxsize=1)  # reading them takes 50 ms
def _certificates() -> ssl.SSLContext:
    import httpx

    return httpx.create_ssl_context()


def _bounded(stream: httpx.SyncByteStream, until: float) -> httpx.SyncByteStream:
    """Return the bytes of an answer, as many and as long as the rule allows."""
    import httpx

    class Bounded(httpx.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            size = line = 0
            for piece in stream:
                if time.monotonic() > until:  # it comes, but in drops
                    raise httpx.ReadTimeout("")
                size += len(piece)
                end = piece.rfind(b"\n")
                line = line + len(piece) if end < 0 else len(piece) - end - 1
                for length, largest in ((size, MAX_BYTES), (line, MAX_LINE_BYTES)):
                    if length > largest:
                        raise TooLargeError(f"the answer is larger than {largest >> 20} MB")
                yield piece

        def close(self) -> None:
            stream.close()

    return Bounded()
