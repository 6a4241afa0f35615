"""The watcher's end of the socket: take questions, return answers."""

from __future__ import annotations

import contextlib
import json
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from vault_index import files
from vault_index.errors import VaultError, WriteError
from vault_index.hotpath import protocol

# connections that wait to be accepted: a hundred hooks in a second are no reason to refuse
QUEUE = 256
PATIENCE_SECONDS = 2.0  # for a question to arrive
MAX_CONNECTIONS = 512  # at work; more wait in the queue; of one vault, `vault_watch.MAX_WAITING`
FULL_SECONDS = 0.05  # between two tries to accept where no file descriptor is left
POLL_SECONDS = 3600.0  # between two looks of `socketserver` whether to stop: it is never asked to

Answer = Callable[[Mapping[str, Any]], Mapping[str, Any]]


class Server:
    """Listens on the user's socket, mode 0600, and answers each question in a thread of its own."""

    def __init__(self, answer: Answer) -> None:
        self._server = _listen(answer)
        self.place = str(self._server.server_address)
        self._inode = Path(self.place).lstat().st_ino

    def start(self) -> None:
        """Begin to accept; connections made earlier waited."""
        serve = self._server.serve_forever
        threading.Thread(target=serve, args=(POLL_SECONDS,), daemon=True, name="accept").start()

    def is_reachable(self) -> bool:
        """Whether the socket is still the one at its path."""
        try:
            return Path(self.place).lstat().st_ino == self._inode
        except OSError:
            return False

    def close(self) -> None:
        """Stop listening; the socket's name goes, unless it is another socket's by now."""
        if self.is_reachable():
            with contextlib.suppress(OSError):
                Path(self.place).unlink()
        self._server.socket.close()


class _Connections(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = QUEUE

    def __init__(self, place: str, answer: Answer) -> None:
        self.answer = answer
        self._free = threading.BoundedSemaphore(MAX_CONNECTIONS)
        super().__init__(place, _Handler)

    def server_activate(self) -> None:
        Path(str(self.server_address)).chmod(0o600)  # before anyone can connect
        super().server_activate()

    def get_request(self) -> tuple[socket.socket, Any]:
        try:
            return super().get_request()
        except OSError:
            time.sleep(FULL_SECONDS)
            raise

    def verify_request(self, request: Any, _address: Any) -> bool:
        return not protocol.is_other_user(request)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._free.acquire()
        try:
            super().process_request(request, client_address)
        except BaseException:  # no thread could be started
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, _request: Any, _address: Any) -> None:
        return


class _Handler(socketserver.BaseRequestHandler):
    server: _Connections

    def handle(self) -> None:
        with contextlib.suppress(OSError, ValueError):  # gone before the answer
            asked = protocol.receive(self.request, time.monotonic() + PATIENCE_SECONDS)
            if asked:
                self.request.settimeout(PATIENCE_SECONDS)
                reply = _reply(asked, self.server.answer)
                self.request.sendall(json.dumps(reply).encode() + b"\n")


def _reply(asked: bytes, answer: Answer) -> dict[str, Any]:
    try:
        question = json.loads(asked)
        if not isinstance(question, dict):
            raise ValueError("not an object")
    except ValueError as error:
        return {"protocol": protocol.PROTOCOL, "declined": f"not a question: {error}"}
    try:
        return {"protocol": protocol.PROTOCOL, **answer(question)}
    except VaultError as error:
        reply = {"refused": error.message, "hint": error.hint}
    except Exception as error:  # noqa: BLE001  # the caller falls back; the watcher lives on
        reply = {"declined": f"{type(error).__name__}: {error}"}
    return {"protocol": protocol.PROTOCOL, **reply}


def _listen(answer: Answer) -> _Connections:
    problem: OSError | WriteError | None = None
    for place in protocol.places():
        try:
            files.make_folder(Path(place).parent)
            Path(place).unlink(missing_ok=True)
            return _Connections(place, answer)
        except (OSError, WriteError) as error:
            problem = error
    raise WriteError(
        f"no socket can be made in {protocol.folder()}: {problem}", "check its permissions"
    )
