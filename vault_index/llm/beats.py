"""A call that may be silent for minutes: who waits for it hears so each second, and may end it.

The call runs in a thread of its own, whose connection `Line` ends from outside.
"""

from __future__ import annotations

import socket
import struct
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

from vault_index.llm.door import Take

if TYPE_CHECKING:
    import httpx

BEAT_SECONDS = 1.0
_RESET = struct.pack("ii", 1, 0)  # on, 0 s: the connection is reset when it is closed
_T = TypeVar("_T")


class Ended(BaseException):
    """The caller has gone: none of a door's clauses catches it."""


class Line:
    """The connections of a client of HTTP, which another thread ends at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()
        self._is_ended = False

    def follow(self, request: httpx.Request) -> None:
        """Follow the connection of a request: a hook of the client."""
        self._is_ended = False
        request.extensions["trace"] = self._trace

    def end(self) -> None:
        """End all connections, and one that is being made."""
        with self._lock:
            self._is_ended = True
            sockets = list(self._sockets)
        for each in sockets:
            with suppress(OSError):  # it is closed already
                # A server that is blocked in writing does not hear a polite end.
                each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                socket.socket.shutdown(each, socket.SHUT_RDWR)

    def _trace(self, name: str, details: dict[str, Any]) -> None:
        made = details.get("return_value")
        if not name.endswith((".connect_tcp.complete", ".start_tls.complete")) or made is None:
            return
        with self._lock:
            self._sockets.add(made.get_extra_info("socket"))
            is_ended = self._is_ended
        if is_ended:
            self.end()


def call(work: Callable[[Take], _T], take: Take, end: Callable[[], None]) -> _T:
    """Return what `work` returns; `take` gets the pieces that it passes on, and "" in each silent second.

    An exception of `take`, or Ctrl-C, ends the work by `end` and passes through.
    """
    coming: SimpleQueue[str | None] = SimpleQueue()
    outcome: list[Callable[[], _T]] = []
    is_over = threading.Event()

    def pass_on(piece: str) -> None:
        if is_over.is_set():
            raise Ended
        coming.put(piece)

    def run() -> None:
        try:
            value = work(pass_on)
            outcome.append(lambda: value)
        except BaseException as error:  # noqa: BLE001  # it is raised where the call is waited for
            outcome.append(_raising(error))
        coming.put(None)

    thread = threading.Thread(target=run, daemon=True, name="model")
    thread.start()
    try:
        while (piece := _next(coming)) is not None:
            take(piece)
    except BaseException:
        is_over.set()
        end()
        raise
    return outcome[0]()


def sleep(seconds: float, pause: Callable[[float], None], take: Take) -> None:
    """Sleep by `pause`; `take` gets "" before each second of it."""
    while seconds > 0:
        take("")
        pause(min(BEAT_SECONDS, seconds))
        seconds -= BEAT_SECONDS


def _next(coming: SimpleQueue[str | None]) -> str | None:
    try:
        return coming.get(timeout=BEAT_SECONDS)
    except Empty:
        return ""


def _raising(error: BaseException) -> Callable[[], Any]:
    def again() -> Any:
        raise error

    return again
