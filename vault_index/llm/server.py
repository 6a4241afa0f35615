"""A server that speaks JSON over HTTP: one POST, bounded in time and size, each failure in clear words.

An answer comes whole, or as server-sent events where it is asked for and the server does it.

A failure that may pass is tried again three times, after pauses that double: a network that breaks, a
server that is overloaded, restarts, or limits the rate. A wrong key, a question that the server refuses
and a time-out are not: the call may have been paid for, and the next one would wait as long.

The key goes to the address that the user named and to no other (see `model_http`), and in the clear to
this machine only. Nothing that a server answered is in an error, but for the message of an error status,
cut short. The SDKs of OpenAI and Anthropic promise less: they take a stream that breaks for whole, lose
an answer of a server that does not stream, and send headers that the environment names to any address.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from urllib.parse import urlsplit

from vault_index import model_http
from vault_index.errors import ModelAwayError, ModelCallError, SettingsError
from vault_index.llm.door import Line
from vault_index.text.quote import visible_line

if TYPE_CHECKING:
    import httpx


_LINE_END = re.compile(rb"\r\n|\n|\r(?!\Z)")  # a return at the end may be half of one
_DONE = b"[DONE]"


class Stream(Protocol):
    """An answer that comes in events."""

    @property
    def is_whole(self) -> bool:
        """Whether the answer came to its end, so that the connection may end."""

    @property
    def is_ended(self) -> bool:
        """Whether nothing more is to come, so that nobody waits for it."""

    @property
    def value(self) -> dict[str, Any]:
        """All events as the one object that the server answers with if it does not stream."""

    def add(self, event: dict[str, Any]) -> None:
        """Take the next event; an empty one is the mark at the end."""


class Events:
    """A reader of events, in whatever pieces the bytes come. Events without JSON are left out."""

    def __init__(self) -> None:
        self._line = bytearray()
        self._name = b""
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> Iterator[dict[str, Any]]:
        """Yield the events that end in a piece."""
        has_return = self._line.endswith(b"\r")
        self._line += piece
        if not has_return and b"\n" not in piece and b"\r" not in piece:
            return
        *lines, rest = _LINE_END.split(bytes(self._line))
        self._line = bytearray(rest)
        for line in lines:
            yield from self._read(line)

    def end(self) -> Iterator[dict[str, Any]]:
        """Yield the last event, where the line that ends it is missing."""
        yield from self.feed(b"\n\n")

    def _read(self, line: bytes) -> Iterator[dict[str, Any]]:
        if not line:
            name, data = self._name, b"\n".join(self._data)
            self._name, self._data = b"", []
            event = _event(name, data)
            if event is not None:
                yield event
            return
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
        elif field == b"error":  # as older servers of llama.cpp do
            self._name, self._data = field, [value]
        elif field == b"event":
            self._name = value


def _event(name: bytes, data: bytes) -> dict[str, Any] | None:
    """Return the object of an event, {} for the mark at the end, None for all else."""
    if data.strip() == _DONE:
        return {}
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or not value:
        return None
    return {"error": value} if name == b"error" and "error" not in value else value


RETRIES = 3
FIRST_SECONDS = 0.5  # of a pause; then 1 and 2, each up to half as long again
MAX_SECONDS = 20.0  # that a server may ask to wait; where it asks for more, nothing is tried again

Sleep = Callable[[float], None]
_T = TypeVar("_T")


class PassingError(ModelCallError):
    """A failure that may pass. `final` is raised if it does not; `after` are the seconds to wait."""

    def __init__(self, final: ModelCallError, after: float = 0.0) -> None:
        super().__init__(final.message, final.hint)
        self.final = final
        self.after = after


def call_repeatedly(attempt: Callable[[], _T], sleep: Sleep) -> _T:
    """Return what an attempt returns, the first or one of three more. Raises ModelCallError."""
    pause = FIRST_SECONDS
    for left in range(RETRIES, -1, -1):
        try:
            return attempt()
        except PassingError as error:
            if not left or error.after > MAX_SECONDS:
                raise error.final from None
            sleep(max(error.after, pause * random.uniform(1, 1.5)))
            pause *= 2
    raise AssertionError  # the last attempt returns or raises


def passes(status: int) -> bool:
    """Whether a failure with a status of HTTP may pass."""
    return status == 429 or status >= 500


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
    """The address of a server, and the names of what the user may have set wrongly."""

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
        """The error that the server names, else {}."""
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
