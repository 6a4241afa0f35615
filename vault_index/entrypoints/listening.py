"""The socket that an HTTP door listens on, and what holds for each connection to it.

A connection whose request is not there yet costs its client nothing, so it is ended: after some seconds,
and at once where there are too many such, the longest waiting first.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import re
import secrets
import socket
from pathlib import Path
from typing import Any, ClassVar

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from vault_index import files
from vault_index.entrypoints.guard import App
from vault_index.errors import VaultError, WriteError
from vault_index.hotpath import index_files

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
        raise VaultError(
            f"cannot listen on {host}:{port}: {reason.lower()}", "choose another --port"
        ) from None
    # asyncio does so only for sockets it made itself; an answer in two parts then waits 40 ms
    ours.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return ours


def settings(app: App, **options: Any) -> uvicorn.Config:
    """Return the settings of a server for an application behind its guard."""
    return uvicorn.Config(
        app,
        http=Connection,
        access_log=False,
        server_header=False,
        backlog=BACKLOG,
        **options,
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


def of(home: Path) -> str:
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
        raise WriteError(
            f"cannot write {file}: {error.strerror}", "make it a file of yours, or remove it"
        ) from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)  # another door may be making it
        os.fchmod(handle, 0o600)
        written = os.pread(handle, MAX_BYTES, 0).strip()
        if not written:
            written = secrets.token_urlsafe(32).encode()
            os.pwrite(handle, written + b"\n", 0)
            os.fsync(handle)
        return _checked(written, file)
    finally:
        os.close(handle)


def read(file: Path) -> str:
    """Return the token in a file that the user names. Raises VaultError."""
    return _checked(files.read_file(file).strip(), file)


def _checked(written: bytes, file: Path) -> str:
    if not _TOKEN.fullmatch(written):
        raise VaultError(
            f"{file} holds no token: 16 to 256 characters without a space",
            "remove it, or write one into it",
        )
    return written.decode()
