"""An object store that speaks S3 (moto's server, which keeps conditional writes), and a proxy before it.

The proxy counts requests and bytes, and passes on a conditional write by itself: moto looks, then
writes, and of two at once both could be the first. It can drop the header that makes a write
conditional, as stores without such writes do, and cut every connection.
"""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from moto.server import ThreadedMotoServer

BUCKET = "lessons"
URI = f"s3://{BUCKET}/team"
KEY = "key-of-tests"


@dataclass
class ObjectStore:
    """A server of S3, and the environment of who uses it."""

    port: int
    env: dict[str, str] = field(default_factory=dict)
    requests: int = 0
    bytes_read: int = 0
    is_cut: bool = False  # whether connections end before an answer
    cut_after: int | None = None  # further requests; then the server is gone
    does_before: bool = False  # whether it does what it is asked before it is gone
    ignores_conditions: bool = False
    by_itself: threading.Lock = field(default_factory=threading.Lock)  # held by a conditional write


def environ_of(port: int) -> dict[str, str]:
    """Return the environment of who uses the store behind a port."""
    return {
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": "secret-of-tests",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT": f"http://127.0.0.1:{port}",
        "AWS_ALLOW_HTTP": "true",
        "LESSONS_INDEX_SHARED": URI,
    }


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    """Run a server with an empty bucket, behind a proxy."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    _, inner = server.get_host_and_port()
    connection = http.client.HTTPConnection("127.0.0.1", inner)
    connection.request("PUT", f"/{BUCKET}", headers={"Host": "127.0.0.1"})
    assert connection.getresponse().status == 200
    connection.close()
    store = ObjectStore(0)
    proxy = ThreadingHTTPServer(("127.0.0.1", 0), _handler(store, inner))
    proxy.daemon_threads = True
    store.port = proxy.server_address[1]
    store.env = environ_of(store.port)
    thread = threading.Thread(target=proxy.serve_forever, daemon=True)
    thread.start()
    try:
        yield store
    finally:
        proxy.shutdown()
        proxy.server_close()
        server.stop()


def _handler(store: ObjectStore, inner: int) -> type[BaseHTTPRequestHandler]:
    """Return the handler that passes requests on to the inner port."""

    class Proxy(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _pass_on(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(size)
            is_last = store.cut_after == 0
            if store.cut_after is not None:
                store.cut_after -= 1
                store.is_cut = store.cut_after < 0
            if store.is_cut and not (is_last and store.does_before):
                self._cut()
                return
            if self.headers.get("Authorization", KEY).find(KEY) < 0:
                self._answer(403, {}, b"<Error><Code>InvalidAccessKeyId</Code></Error>")
                return
            headers = dict(self.headers.items())
            if store.ignores_conditions:
                headers.pop("If-None-Match", None)
                headers.pop("if-none-match", None)
            is_conditional = any(name.lower() == "if-none-match" for name in headers)
            connection = http.client.HTTPConnection("127.0.0.1", inner)
            with store.by_itself if is_conditional else nullcontext():
                connection.request(self.command, self.path, body, headers)
                answer = connection.getresponse()
                data = answer.read()
            connection.close()
            if store.is_cut:
                self._cut()
                return
            store.requests += 1
            store.bytes_read += len(data)
            kept = {name: value for name, value in answer.getheaders() if name.lower() not in _OWN}
            length = answer.getheader("Content-Length")
            self._answer(answer.status, kept, data, length)

        def _cut(self) -> None:
            self.close_connection = True
            self.connection.close()

        def _answer(
            self, status: int, headers: dict[str, str], data: bytes, length: str | None = None
        ) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            is_head = self.command == "HEAD"
            self.send_header("Content-Length", (length or "0") if is_head else str(len(data)))
            self.end_headers()
            if not is_head:
                self.wfile.write(data)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _pass_on

        def log_message(self, *_: Any) -> None:
            """Print nothing."""

    return Proxy


_OWN = ("content-length", "transfer-encoding", "connection", "server", "date")
