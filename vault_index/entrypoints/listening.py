"""The socket that an HTTP door listens on."""

from __future__ import annotations

import socket

from vault_index.errors import VaultError

BACKLOG = 256  # connections that wait to be accepted


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
