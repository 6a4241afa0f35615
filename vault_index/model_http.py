"""Requests to the server of a model, whose answers nobody vouches for, and the client of Ollama.

A redirect is not followed: what is asked holds a user's text, and often a key. An answer has a limit in
time, in size and in the size of a line. A server of this machine is asked without a proxy.
"""

from __future__ import annotations

import ipaddress
import re
import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from vault_index.errors import VaultError
from vault_index.text.quote import visible_line

if TYPE_CHECKING:
    import ssl

    import httpx
    import ollama

CONNECT_SECONDS = 10.0
MAX_BYTES = 32 * 1024 * 1024  # of an answer: a token of a stream has some 300 bytes around it
MAX_LINE_BYTES = 8 * 1024 * 1024  # 32 vectors of 8,192 numbers are one line of 7 MB
MAX_MESSAGE = 200  # characters of what the server says of an error

_T = TypeVar("_T")
Raise = Callable[[int, str, str], VaultError]  # (status, message, hint) -> what to raise
# In the place of the status of HTTP:
NOT_REACHED, NO_ADDRESS = 0, -1  # nobody was asked; nobody can be, at such an address
CUT, ODD = -2, -3  # the connection broke; what came is no answer of Ollama's
TOO_LATE = 408
BROKE = 500  # an error in the middle of a stream
_LOG = "see the log of `ollama serve`"
_ANOTHER = "check that OLLAMA_HOST is an Ollama server, and a recent one"


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


class OllamaClient:
    """A server's address and how long to wait for it.

    `host` is what `OLLAMA_HOST` may hold: a name, a port, a URL. Nothing is asked before first use.
    `follow` takes each request before it is sent.
    """

    def __init__(
        self, host: str, timeout: float, follow: Callable[[httpx.Request], None] | None = None
    ) -> None:
        # what servers listen on is not an address to ask; 10.0.0.0 is one
        self.host = re.sub(r"(?<![\w.])0\.0\.0\.0(?![\w.])", "127.0.0.1", host)
        self.timeout = timeout
        self._follow = follow
        self._client: ollama.Client | None = None

    def call(
        self, ask: Callable[[ollama.Client], _T], model: str, instead: str, error_of: Raise
    ) -> _T:
        """Ask the server; each way in which it can fail becomes an error that says what to do.

        `instead` is what else a user may do when nobody answers. `error_of` makes the error.
        """
        import httpx
        import ollama

        try:
            if self._client is None:
                name = urlsplit(self.host if "//" in self.host else f"//{self.host}").hostname
                rule = options(name or "localhost", self.timeout, self._follow)
                self._client = ollama.Client(self.host, **rule)
            return ask(self._client)
        except ollama.ResponseError as error:
            status = error.status_code if error.status_code > 0 else BROKE
            said = visible_line(first_line(error.error or f"status {status}"))[:MAX_MESSAGE]
            problem, hint = f": {said}", f"run: ollama pull {model}" if status == 404 else _LOG
            if 300 <= status < 400:
                problem = ": it leads elsewhere, where no text is sent"
                hint = "set OLLAMA_HOST to where it leads, if that is yours"
        except TooLargeError as error:
            status, problem, hint = ODD, f": {error}", _ANOTHER
        except httpx.TimeoutException as error:
            status = NOT_REACHED if isinstance(error, httpx.ConnectTimeout) else TOO_LATE
            problem, hint = f" did not answer in {self.timeout:g} s", "see whether it is overloaded"
        except (OSError, httpx.HTTPError) as error:
            is_away = isinstance(error, ConnectionError | httpx.ConnectError)
            status = NOT_REACHED if is_away else CUT
            if isinstance(error, httpx.UnsupportedProtocol):
                status = NO_ADDRESS
            problem = f" cannot be reached: {first_line(error)}"
            hint = f"start it with `ollama serve`, set OLLAMA_HOST, or {instead}"
        except httpx.InvalidURL as error:
            message = f"Ollama cannot be asked at {self.host!r}: {first_line(error)}"
            hint = "set OLLAMA_HOST to a host, a host:port or a URL"
            raise error_of(NO_ADDRESS, message, hint) from None
        except (ValueError, TypeError, AttributeError) as error:  # not what the API promises
            status, hint = ODD, _ANOTHER
            problem = f" answered oddly: {first_line(error)}"
        raise error_of(status, f"Ollama at {self.host}{problem}", hint)


def first_line(error: Any) -> str:
    """Return the first line of an error's text, its type for one without."""
    return (str(error).splitlines() or [type(error).__name__])[0]
