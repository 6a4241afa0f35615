"""Connections to a real server whose clients do not finish what they begin."""

from __future__ import annotations

import contextlib
import select
import socket
from collections.abc import Iterator


@contextlib.contextmanager
def half_open(port: int, count: int, begun: bytes) -> Iterator[list[socket.socket]]:
    """Open connections that send the beginning of a request and no more; they are closed at the end."""
    with contextlib.ExitStack() as stack:
        lines = []
        for _ in range(count):
            line = socket.create_connection(("127.0.0.1", port), timeout=60)
            lines.append(stack.enter_context(line))
            with contextlib.suppress(OSError):  # ended already
                line.sendall(begun)
        yield lines


def still_open(lines: list[socket.socket]) -> list[socket.socket]:
    """Return the connections that the server has not ended."""
    poll = select.poll()
    for line in lines:
        poll.register(line, select.POLLIN)
    ended = {number for number, _ in poll.poll(0)}
    return [line for line in lines if line.fileno() not in ended]


def answer_to(port: int, *parts: bytes) -> bytes:
    """Send bytes as they are, and return what comes back until the server closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as line:
        answer = b""
        with contextlib.suppress(OSError):  # it has heard enough
            for part in parts:
                line.sendall(part)
        with contextlib.suppress(ConnectionResetError):
            while part := line.recv(65536):
                answer += part
        return answer
