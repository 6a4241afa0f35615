"""A server that speaks JSON over HTTP: one POST, bounded in time and size, each failure in clear words.

An answer comes whole or as server-sent events. A broken network, an overloaded server and a rate limit
are tried again three times, after pauses that double. A wrong key, a refused question and a time-out
are not: the call may have been paid for.

The key goes only to the address that the user named (see `model_http`), and in the clear only to this
machine. An error quotes a server only by the message of an error status, cut short. The SDKs of OpenAI
and Anthropic promise less: they take a broken stream for whole, and send headers from the environment
to any address.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, tee
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar
from urllib.parse import urlsplit

from vault_index import model_http
from vault_index.config import Config
from vault_index.errors import ModelAwayError, ModelCallError, ModelToolsError, SettingsError
from vault_index.llm import backend
from vault_index.text.quote import visible_line

if TYPE_CHECKING:
    import httpx


_LINE_END = re.compile(rb"\r\n|\n|\r")
_EVENT_END = re.compile(rb"(?:\r\n|\n|\r(?!\n|\Z)){2}")  # a return at the end may be half of one
_DONE = b"[DONE]"


class StreamedReply:
    """A reply that is put together from the events of a stream; a whole answer is one event.

    A subclass adds events, and names the reasons of its API for an end and its counts of tokens.
    """

    ends: ClassVar[Mapping[str, str]]
    input_counts: ClassVar[tuple[str, ...]]
    output_count: ClassVar[str]

    def __init__(self, take: backend.Take | None = None) -> None:
        self.began = False  # an answer has begun, and not an error or something else
        self.is_ended = False  # nothing more is to come, so that nobody waits for it
        self.error: Any = None
        self._take = take
        self._texts: list[str] = []
        self._usage: dict[str, Any] = {}
        self._end = ""  # why the model ended, in the words of its API

    def add(self, event: dict[str, Any]) -> None:
        """Take the next event; an empty one is the mark at the end."""
        raise NotImplementedError

    @property
    def is_whole(self) -> bool:
        """Whether the model said why it ended; not every server marks the end of the events."""
        return bool(self._end) or self.is_ended

    @property
    def reply(self) -> backend.Reply | None:
        """The reply, or None."""
        end = self._why_ended()
        if self.error is not None or not self.began or not end:
            return None
        return backend.Reply(
            "".join(self._texts),
            end,
            tokens_of(self._usage, *self.input_counts),
            tokens_of(self._usage, self.output_count),
            calls=tuple(call for call in self._calls() if call is not None),
        )

    def _why_ended(self) -> str:
        return self.ends.get(self._end, "")

    def _calls(self) -> Iterable[backend.ToolCall | None]:
        raise NotImplementedError

    def _add_text(self, text: Any) -> None:
        if isinstance(text, str) and text:
            self._texts.append(text)
            if self._take is not None:
                self._take(text)

    def _count(self, usage: Any) -> None:
        """Take the tokens counted so far: later events have the larger numbers."""
        if isinstance(usage, dict):
            self._usage |= {key: count for key, count in usage.items() if count is not None}


def events_in(pieces: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """Yield the events of a stream, in whatever pieces it comes. Events without JSON are left out."""
    rest = bytearray()
    for piece in chain(pieces, [b"\n\n"]):  # the line that ends the last event may be missing
        may_end = rest.endswith(b"\r") or b"\n" in piece or b"\r" in piece
        rest += piece
        if may_end:
            *events, last = _EVENT_END.split(bytes(rest))
            rest = bytearray(last)
            yield from (value for event in events if (value := _value(event)) is not None)


def _value(event: bytes) -> dict[str, Any] | None:
    """Return the object of an event, {} for the mark at the end, None for all else."""
    fields = [line.partition(b":") for line in _LINE_END.split(event)]
    # older servers of llama.cpp have a field `error`
    data = b"\n".join(value for name, _, value in fields if name in (b"data", b"error"))
    if data.strip() == _DONE:
        return {}
    value = backend.json_object(data)
    if not value:
        return None
    is_error = any(
        name == b"error" or (name, rest.strip()) == (b"event", b"error") for name, _, rest in fields
    )
    return {"error": value} if is_error and "error" not in value else value


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
    """Return the result of up to four attempts. Raises ModelCallError."""
    pause = FIRST_SECONDS
    for retries in range(RETRIES, -1, -1):
        try:
            return attempt()
        except PassingError as error:
            if not retries or error.after > MAX_SECONDS:
                raise error.final from None
            sleep(max(error.after, pause * random.uniform(1, 1.5)))
            pause *= 2
    raise AssertionError  # the last attempt returns or raises


def passes(status: int) -> bool:
    """Whether a failure with a status of HTTP may pass."""
    return status == 429 or status >= 500


MAX_MESSAGE = 200  # characters of a server's error message
_AWAY = (401, 402, 403, 404, 429, 503, 529)  # it did nothing, and others have the same trouble
_JSON_ONLY = {"Content-Type": "application/json", "Accept": "application/json"}
_STREAM_TOO = {"Accept": "text/event-stream, application/json"}
_HINTS = {
    401: "check {key}",
    402: "check the balance of the account that {key} is of",
    403: "check {key}, and whether it may use this model",
    404: "check the name of the model and the address: {setting}",
    413: "choose a model that takes more text",
    429: "wait, or choose another model",
}


@dataclass(frozen=True, slots=True)
class Answered:
    """A status of HTTP and the JSON object that came with it, {} without one."""

    status: int
    value: dict[str, Any]
    after: float = 0.0  # seconds that the server asks to wait

    @property
    def error(self) -> dict[str, Any]:
        error = self.value.get("error")
        if isinstance(error, dict):
            return error
        message = error or self.value.get("detail") or self.value.get("message")
        return {"message": message} if isinstance(message, str) else {}


class HttpBackend(backend.Backend):
    """A model behind an API over HTTP. A subclass writes the request and reads the answer."""

    reading: ClassVar[type[StreamedReply]]
    needs_key: ClassVar = False

    def __init__(
        self, model: str, config: Config, environ: Mapping[str, str], timeout: float = 0
    ) -> None:
        super().__init__(model, config, environ, timeout)
        self.url, self.setting, self.key_name = self._server()
        self.key = environ.get(self.key_name, "").strip()
        self.refused: set[str] = set()  # parts of a request that this server does not know
        try:
            parts = urlsplit(self.url)
            is_usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        except ValueError:
            is_usable = False
        if not is_usable:
            raise SettingsError(
                f"{self.setting} is not an address of a server",
                "write it as http://127.0.0.1:8080/v1 or https://HOST/v1",
            )
        self.host = parts.hostname or ""
        port = f":{parts.port}" if parts.port else ""
        self.server = f"{parts.scheme}://{self.host}{port}"  # without a path, or a password in it
        if self.key and parts.scheme == "http" and not model_http.is_this_machine(self.host):
            raise SettingsError(
                f"{self.key_name} is not sent in the clear to {self.server}",
                f"use an https address in {self.setting}, or start without {self.key_name}",
            )

    def ask(
        self, question: backend.ModelQuestion, take: backend.Take | None = None
    ) -> backend.Reply:
        """Return the reply of one request that the server takes. Raises ModelCallError."""
        if self.needs_key and not self.key:
            hint = f"set {self.key_name} in the environment"
            raise ModelAwayError(f"{self.name}: there is no key", hint)
        while True:
            body = self._body(question, streams=take is not None)
            stream = self.reading(take) if body.get("stream") else None
            answered = self._post(body, stream)
            reading = stream
            if reading is None or not reading.began:  # not every server streams
                reading = self.reading()
                reading.add(answered.value)
            reply = reading.reply if answered.status == 200 else None
            if reply is not None:
                if take is not None and reply.text and reading is not stream:
                    take(reply.text)
                return reply
            if (
                "tools" in body
                and answered.status >= 400
                and backend.speaks_of_tools(answered.value)
            ):
                raise ModelToolsError(f"{self.name} takes no tools", "choose another model")
            if not self._has_simpler_form(answered, body):
                raise self._failure(answered)

    def _server(self) -> tuple[str, str, str]:
        """Return the address, its setting, and its key's variable. Raises SettingsError."""
        raise NotImplementedError

    def _headers(self) -> dict[str, str]:
        raise NotImplementedError

    def _body(self, question: backend.ModelQuestion, streams: bool) -> dict[str, Any]:
        raise NotImplementedError

    def _has_simpler_form(self, _answered: Answered, _body: Mapping[str, Any]) -> bool:
        """Whether the next request will leave out the part that the server did not take of this one."""
        return False

    def _post(self, body: Mapping[str, Any], stream: StreamedReply | None) -> Answered:
        """Return the server's answer, whatever the status. Raises ModelCallError."""
        import httpx  # 80 ms

        server, setting = f"{self.name}: {self.server}", self.setting
        network = f"check {setting}, and whether the server runs"
        # halves of characters become question marks
        data = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        headers = _JSON_ONLY | self._headers() | ({} if stream is None else _STREAM_TOO)
        try:
            options = model_http.options(self.host, self.timeout, self.connection.follow)
            with (
                httpx.Client(**options) as client,
                client.stream("POST", self.url, content=data, headers=headers) as response,
            ):
                if stream is not None and response.status_code == 200:
                    return _streamed(response.iter_raw(), stream)
                answer = backend.json_object(b"".join(response.iter_raw())) or {}
                return Answered(response.status_code, answer, _after(response))
        except (httpx.ConnectTimeout, httpx.ConnectError, httpx.ProxyError) as error:
            kind = {httpx.ConnectError: ": no connection", httpx.ProxyError: ": its proxy declines"}
            away = f"{server} cannot be reached{kind.get(type(error), '')}"
            raise PassingError(ModelAwayError(away, network)) from None
        except model_http.TooLargeError as error:
            raise ModelCallError(f"{self.name}: {error}", f"check {setting}") from None
        except httpx.TimeoutException:
            raise ModelCallError(
                f"{server} did not answer in {self.timeout:g} s",
                "see whether it is overloaded, or choose a smaller model",
            ) from None
        except httpx.TransportError:
            raise PassingError(ModelCallError(f"{server} ended the connection", network)) from None
        except (httpx.InvalidURL, OSError, ValueError, ImportError):  # before anything is sent
            raise ModelAwayError(
                f"{server} cannot be asked",
                f"check {setting}, and the variables of proxies and certificates",
            ) from None

    def _failure(self, answered: Answered) -> ModelCallError:
        """Return the error for an answer that no model gave."""
        status, server = answered.status, f"{self.name}: {self.server}"
        code = answered.error.get("code")
        if status == 200 and isinstance(code, int) and 400 <= code <= 599:
            status = code  # of the server behind that one
        elif 200 <= status < 300:
            says = "an error" if answered.error else "something else than an answer of a model"
            return ModelCallError(f"{server} answered with {says}", f"check {self.setting}")
        if 300 <= status < 400:
            away = "leads elsewhere, where no key and no text is sent"
            return ModelCallError(f"{server} {away}", f"check {self.setting}")
        kind = ModelAwayError if status in _AWAY else ModelCallError
        hint = _HINTS.get(status, "see the log of the server, or choose another model")
        hint = hint.format(key=self.key_name, setting=self.setting)
        error = kind(f"{server}: status {status}{self._message(answered, status)}", hint)
        return PassingError(error, answered.after) if passes(status) else error

    def _message(self, answered: Answered, status: int) -> str:
        message = answered.error.get("message")
        if not isinstance(message, str) or status < 400 or not message.strip():
            return ""
        line = visible_line(message.strip().splitlines()[0])
        if self.key:
            line = line.replace(self.key, "[key]")
        return f": {line[:MAX_MESSAGE]}"


def tokens_of(usage: Any, *keys: str) -> int | None:
    """Return the sum of a server's counts; None where it does not say the first."""
    counts = [usage.get(key) if isinstance(usage, dict) else None for key in keys]
    numbers = [count if type(count) is int and 0 <= count < 1e9 else None for count in counts]
    return None if numbers[0] is None else sum(count or 0 for count in numbers)


def dict_at(value: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return the object at a key, an empty one without."""
    inner = value.get(key)
    return inner if isinstance(inner, dict) else {}


def _streamed(pieces: Iterator[bytes], reading: StreamedReply) -> Answered:
    """Return the answer that comes in events, or at once from a server that does not stream."""
    import httpx

    pieces, whole = tee(pieces)
    is_stream = False
    for event in events_in(pieces):
        is_stream = True
        reading.add(event)
        if reading.is_ended:
            break
    if is_stream and not reading.is_whole:
        raise httpx.RemoteProtocolError("")
    error = {"error": reading.error}
    return Answered(200, error if is_stream else backend.json_object(b"".join(whole)) or {})


def _after(response: httpx.Response) -> float:
    value = response.headers.get("retry-after", "")
    try:
        seconds = float(value)
    except ValueError:  # a date: no server of a model sends one
        return 0.0
    return seconds if 0 <= seconds < 1e12 else 0.0
