"""A real HTTP server on a port of this machine, in a thread."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType, TracebackType
from typing import Any, Self


class Handler(BaseHTTPRequestHandler):
    """Answers with JSON, and prints nothing."""

    protocol_version = "HTTP/1.1"

    def body(self) -> Any:
        """Return the JSON of a request, {} without one."""
        return json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")

    def send(
        self,
        answer: Any,
        status: int = 200,
        kind: str = "application/json",
        headers: Mapping[str, str] = MappingProxyType({}),
        *,
        is_cut: bool = False,
    ) -> None:
        """Send JSON, or bytes as they are, and nothing to a client that has gone.

        With `is_cut` the connection ends in the middle.
        """
        data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        with suppress(BrokenPipeError, ConnectionResetError):
            self.send_response(status)
            for name, value in {"Content-Type": kind, **headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data[: len(data) // 2] if is_cut else data)
            if is_cut:
                self.wfile.flush()
                self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""


class LocalServer:
    """Serves from `__enter__` to `__exit__`, each request in a thread of its own."""

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), daemon=True
        )

    @property
    def port(self) -> int:
        """The port it listens on."""
        return self._server.server_port

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
