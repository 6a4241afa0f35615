"""A call that may be silent for minutes: the caller gets a heartbeat every second and can cancel.

The call runs in a thread of its own, whose `Connections` are ended from outside.
"""

from __future__ import annotations

import socket
import struct
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import httpx

BEAT_SECONDS = 1.0
_RESET = struct.pack("ii", 1, 0)  # on, 0 s: the connection is reset when it is closed
_T = TypeVar("_T")
_Take = Callable[[str], None]  # takes the next piece of an answer's text


class CallerGone(BaseException):
    """The caller has gone: no clause of a backend catches it."""


class Connections:
    """The connections of an HTTP client, which another thread ends at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()
        self._is_ended = False

    def follow(self, request: httpx.Request) -> None:
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
        connection = details.get("return_value")
        if (
            not name.endswith((".connect_tcp.complete", ".start_tls.complete"))
            or connection is None
        ):
            return
        with self._lock:
            self._sockets.add(connection.get_extra_info("socket"))
            is_ended = self._is_ended
        if is_ended:
            self.end()


def in_thread(work: Callable[[], _T], name: str) -> Future[_T]:
    """Start work in a thread that does not hold up the end of the process."""
    result: Future[_T] = Future()

    def run() -> None:
        try:
            result.set_result(work())
        except BaseException as error:  # noqa: BLE001  # it is raised where the result is waited for
            result.set_exception(error)

    threading.Thread(target=run, daemon=True, name=name).start()
    return result


def call(work: Callable[[_Take], _T], take: _Take, end: Callable[[], None]) -> _T:
    """Run `work` and return its result; `take` gets its pieces, and "" in each silent second.

    An exception of `take`, or Ctrl-C, ends the work by `end` and passes through.
    """
    coming: SimpleQueue[str | None] = SimpleQueue()
    is_over = threading.Event()

    def pass_on(piece: str) -> None:
        if is_over.is_set():
            raise CallerGone
        coming.put(piece)

    result = in_thread(lambda: work(pass_on), "model")
    result.add_done_callback(lambda _: coming.put(None))
    try:
        while (piece := _next(coming)) is not None:
            take(piece)
    except BaseException:
        is_over.set()
        end()
        raise
    return result.result()


def sleep(pause: Callable[[float], None], take: _Take, seconds: float) -> None:
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
