"""Clients that never send the rest of a request keep nobody out, whoever they are."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import httpx
import pytest
import uvicorn

from tests.support.watchers import soon
from vault_index.entrypoints import guard
from vault_index.entrypoints.guard import Receive, Scope, Send

HEAD = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n"
BODY = HEAD + b"Content-Length: 100\r\n\r\n{"


async def answer(scope: Scope, receive: Receive, send: Send) -> None:
    """Read a whole request, and say so; at `/late` after more than a request may take to come."""
    while (await receive()).get("more_body"):
        pass
    await asyncio.sleep(3 * guard.REQUEST_SECONDS if scope["path"] == "/late" else 0)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"whole"})


@contextmanager
def serving() -> Iterator[int]:
    with guard.listening("127.0.0.1", 0) as ours:
        server = uvicorn.Server(guard.settings(answer, lifespan="off", log_level="critical"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [ours]})
        thread.start()
        soon(lambda: server.started)
        yield ours.getsockname()[1]
        server.should_exit = True
        thread.join()


@pytest.mark.parametrize("sent", [b"", HEAD, BODY], ids=["nothing", "half a head", "half a body"])
def test_many_who_wait_make_room_for_one_who_asks(sent: bytes) -> None:
    with serving() as port, ExitStack() as opened:
        for _ in range(2 * guard.MAX_CONNECTIONS):
            slow = opened.enter_context(socket.create_connection(("127.0.0.1", port)))
            slow.sendall(sent)
        whole = httpx.post(f"http://127.0.0.1:{port}/", content=b"x" * 100_000)
        assert (whole.status_code, whole.text) == (200, "whole")


@pytest.mark.parametrize("sent", [b"", HEAD, BODY], ids=["nothing", "half a head", "half a body"])
def test_one_who_waits_is_hung_up_on(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving() as port:
        with monkeypatch.context() as patch:
            patch.setattr(guard, "REQUEST_SECONDS", 0.05)
            with socket.create_connection(("127.0.0.1", port), timeout=60) as slow:
                slow.sendall(sent)
                with contextlib.suppress(ConnectionResetError):
                    assert slow.recv(100) == b""
        # whoever asks has the time of everybody, also where the machine is busy
        assert httpx.get(f"http://127.0.0.1:{port}/").text == "whole"


def test_who_has_asked_may_wait_for_the_answer_and_ask_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(guard, "REQUEST_SECONDS", 0.3)
    with serving() as port, httpx.Client(base_url=f"http://127.0.0.1:{port}") as client:
        for _ in range(2):
            assert client.post("/late", content=b"x").text == "whole"
