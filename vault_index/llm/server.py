"""A server that speaks JSON over HTTP: one POST, bounded in time and size, each failure in clear words.

An answer comes whole, or as server-sent events where it is asked for and the server does it.

The key goes to the address that the user named and to no other (see `model_http`), and in the clear to
this machine only. Nothing that a server answered is in an error, but for the message of an error status,
cut short.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from itertools import chain
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from vault_index import model_http
from vault_index.characters import visible_line
from vault_index.errors import ModelAwayError, ModelCallError, SettingsError
from vault_index.llm.beats import Line
from vault_index.llm.retrying import PassingError, passes
from vault_index.llm.sse import Events, Stream

if TYPE_CHECKING:
    import httpx

TIMEOUT_SECONDS = 600.0  # a small model without a graphics card reads some 50 tokens a second
MAX_MESSAGE = 200  # characters of a server's error message
_AWAY = (401, 402, 403, 404, 429, 503, 529)  # it did nothing, and others have the same trouble
_HINTS = {
    401: "check {key}",
    402: "check the balance of the account that {key} is of",
    403: "check {key}, and whether it may use this model",
    404: "check the name of the model and the address: {setting}",
    413: "choose a model that takes more text",
    429: "wait, or choose another model",
}


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server is asked, and the names of what the user may have set wrongly."""

    url: str
    setting: str  # that names the server
    key_name: str  # the variable of the key
    key: str = ""

    @property
    def shown(self) -> str:
        """The server without a path, or a password in it."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}"


@dataclass(frozen=True, slots=True)
class Answered:
    """A status of HTTP and the JSON object that came with it, {} without one."""

    status: int
    value: dict[str, Any]
    after: float = 0.0  # seconds that the server asks to wait

    @property
    def error(self) -> dict[str, Any]:
        """What the server says of an error, {} if it says nothing."""
        error = self.value.get("error")
        if isinstance(error, dict):
            return error
        said = error or self.value.get("detail") or self.value.get("message")
        return {"message": said} if isinstance(said, str) else {}


def checked(address: Address) -> Address:
    """Return an address that may be asked with its key. Raises SettingsError."""
    try:
        parts = urlsplit(address.url)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname)
        is_usable = is_usable and parts.port != 0
    except ValueError:
        is_usable = False
    if not is_usable:
        raise SettingsError(
            f"{address.setting} is not an address of a server",
            "write it as http://127.0.0.1:8080/v1 or https://HOST/v1",
        )
    if (
        address.key
        and parts.scheme == "http"
        and not model_http.is_this_machine(parts.hostname or "")
    ):
        raise SettingsError(
            f"{address.key_name} is not sent in the clear to {address.shown}",
            f"use an https address in {address.setting}, or start without {address.key_name}",
        )
    return address


class Server:
    """A server's address, the headers it wants, and how long to wait for its whole answer."""

    def __init__(
        self, name: str, address: Address, headers: Mapping[str, str], timeout: float
    ) -> None:
        self._name = name
        self._address = address
        json_only = {"Content-Type": "application/json", "Accept": "application/json"}
        self._headers = {**json_only, **headers}
        self._timeout = timeout
        self._line = Line()

    def end(self) -> None:
        """End the request under way, from another thread."""
        self._line.end()

    def post(self, body: Mapping[str, Any], stream: Stream | None = None) -> Answered:
        """Return what the server answers, whatever the status. Raises ModelCallError.

        `stream` gets each event as it comes, and its value is what is returned; a server that answers
        with one object has not streamed, whatever it was asked for.
        """
        import httpx  # 80 ms

        name, shown = self._name, self._address.shown
        try:
            return self._post(body, stream)
        except httpx.ConnectTimeout:
            away = ModelAwayError(f"{name}: {shown} cannot be reached", _network(self._address))
            raise PassingError(away) from None
        except model_http.TooLargeError as error:
            raise ModelCallError(f"{name}: {error}", f"check {self._address.setting}") from None
        except httpx.TimeoutException:
            raise ModelCallError(
                f"{name}: {shown} did not answer in {self._timeout:g} s",
                "see whether it is overloaded, or choose a smaller model",
            ) from None
        except (httpx.ConnectError, httpx.ProxyError) as error:
            kind = "its proxy declines" if isinstance(error, httpx.ProxyError) else "no connection"
            away = ModelAwayError(
                f"{name}: {shown} cannot be reached: {kind}", _network(self._address)
            )
            raise PassingError(away) from None
        except httpx.TransportError:
            cut = ModelCallError(f"{name}: {shown} ended the connection", _network(self._address))
            raise PassingError(cut) from None
        except (httpx.InvalidURL, OSError, ValueError, ImportError):  # before anything is sent
            raise ModelAwayError(
                f"{name}: {shown} cannot be asked",
                f"check {self._address.setting}, and the variables of proxies and certificates",
            ) from None

    def _post(self, body: Mapping[str, Any], stream: Stream | None) -> Answered:
        import httpx

        data = json.dumps(body, ensure_ascii=False).encode(
            "utf-8", "replace"
        )  # halves of characters
        host = urlsplit(self._address.url).hostname or ""
        accept = {} if stream is None else {"Accept": "text/event-stream, application/json"}
        with (
            httpx.Client(**model_http.options(host, self._timeout, self._line.follow)) as client,
            client.stream(
                "POST", self._address.url, content=data, headers={**self._headers, **accept}
            ) as response,
        ):
            if stream is not None and response.status_code == 200:
                return _streamed(response.iter_raw(), stream)
            answer = b"".join(response.iter_raw())
            return Answered(response.status_code, _object(answer), _after(response))

    def failure(self, answered: Answered) -> ModelCallError:
        """Return the error for an answer that is not one of a model."""
        status, address = answered.status, self._address
        code = answered.error.get("code")
        if status == 200 and isinstance(code, int) and 400 <= code <= 599:
            status = code  # of the server behind that one
        elif 200 <= status < 300:
            says = "an error" if answered.error else "something else than an answer of a model"
            return ModelCallError(
                f"{self._name}: {address.shown} answered with {says}", f"check {address.setting}"
            )
        if 300 <= status < 400:
            return ModelCallError(
                f"{self._name}: {address.shown} leads elsewhere, where no key and no text is sent",
                f"check {address.setting}",
            )
        kind = ModelAwayError if status in _AWAY else ModelCallError
        hint = _HINTS.get(status, "see the log of the server, or choose another model")
        hint = hint.format(key=address.key_name, setting=address.setting)
        error = kind(
            f"{self._name}: {address.shown}: status {status}{self._said(answered, status)}", hint
        )
        return PassingError(error, answered.after) if passes(status) else error

    def _said(self, answered: Answered, status: int) -> str:
        """Return the message of an error status, "" for a page of a proxy and the like."""
        message = answered.error.get("message")
        if not isinstance(message, str) or status < 400 or not message.strip():
            return ""
        line = visible_line(message.strip().splitlines()[0])
        if self._address.key:
            line = line.replace(self._address.key, "[key]")
        return f": {line[:MAX_MESSAGE]}"


def tokens_of(usage: Any, key: str) -> int | None:
    """Return a count of tokens from what a server says; None if it says nothing of use."""
    count = usage.get(key) if isinstance(usage, dict) else None
    is_count = isinstance(count, int) and not isinstance(count, bool) and 0 <= count < 1e9
    return count if is_count else None


def _streamed(pieces: Iterator[bytes], stream: Stream) -> Answered:
    """Return the answer that comes in events, or at once from a server that does not stream."""
    import httpx

    events, answer, is_stream = Events(), bytearray(), False
    for piece in chain(pieces, [b""]):
        if not is_stream:
            answer += piece
        for event in events.feed(piece) if piece else events.end():
            is_stream = True
            stream.add(event)
            if stream.is_ended:
                return Answered(200, stream.value)
    if not is_stream:
        return Answered(200, _object(bytes(answer)))
    if not stream.is_whole:
        raise httpx.RemoteProtocolError("")
    return Answered(200, stream.value)


def _network(address: Address) -> str:
    return f"check {address.setting}, and whether the server runs"


def _object(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _after(response: httpx.Response) -> float:
    """Return the seconds of a Retry-After header, which may be a date; 0 for anything else."""
    value = response.headers.get("retry-after", "")
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - time.time()
        except (ValueError, TypeError):
            return 0.0
    return seconds if 0 <= seconds < 1e12 else 0.0
