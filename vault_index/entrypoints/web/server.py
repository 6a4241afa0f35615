"""The server: a port, the guard before the application, an end in good order."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, cast

import uvicorn

from vault_index.entrypoints.guard import App, Guard, rules_for
from vault_index.entrypoints.listening import listening
from vault_index.entrypoints.web.app import MAX_BODY, application, needs_token
from vault_index.entrypoints.web.door import Door
from vault_index.entrypoints.web.refusal import Refusal

if TYPE_CHECKING:
    from vault_index.vault import Vault

END_SECONDS = 10  # for what is being answered when the server ends


def serve(
    vault: Vault,
    host: str,
    port: int,
    token: str,
    announce: Callable[[str], None],
    note: Callable[[str], None],
) -> None:
    """Serve a vault until SIGTERM or Ctrl-C; `announce` takes the address once it listens.

    Raises VaultError where it cannot listen, or may not without a token.
    """
    rules_for(host, port, token)
    end = _End()
    for number in (signal.SIGTERM, signal.SIGINT):  # uvicorn ends, then sends them once more
        signal.signal(number, end)
    with listening(host, port) as ours:
        port = ours.getsockname()[1]
        rules = rules_for(host, port, token, needs_token=needs_token, max_body=MAX_BODY)
        door = Door(vault)
        guarded = Guard(cast("App", application(door, note)), rules)
        config = uvicorn.Config(
            guarded,
            log_config=None,
            access_log=False,
            lifespan="on",
            server_header=False,
            timeout_graceful_shutdown=END_SECONDS,
        )
        logging.getLogger("uvicorn").setLevel(logging.CRITICAL)  # the application notes bugs
        threading.Thread(target=_begin, args=(door,), daemon=True, name="begin").start()
        announce(f"http://{f'[{host}]' if ':' in host else host}:{port}")
        end.of(uvicorn.Server(config)).run(sockets=[ours])


class _End:
    """A signal handler that ends a server, also one that comes before uvicorn has its own."""

    def __init__(self) -> None:
        self._is_asked = False
        self._server: uvicorn.Server | None = None

    def __call__(self, *_: object) -> None:
        """Take a signal."""
        self._is_asked = True
        if self._server is not None:
            self._server.should_exit = True

    def of(self, server: uvicorn.Server) -> uvicorn.Server:
        """Return a server, which ends at once where a signal came already."""
        self._server = server
        server.should_exit = self._is_asked
        return server


def _begin(door: Door) -> None:
    """Have a watcher started before the first client asks."""
    with suppress(Refusal):
        door.ask("health", {})
