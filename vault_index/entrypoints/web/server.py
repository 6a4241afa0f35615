"""The server: a port, the guard before the application, an end in good order."""

from __future__ import annotations

import logging
import signal
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import uvicorn

from vault_index import api
from vault_index.entrypoints import bug, guard, page_code
from vault_index.entrypoints.web import search, vault_client
from vault_index.entrypoints.web.app import MAX_BODY, application, needs_token
from vault_index.entrypoints.web.page_key import PageKeys
from vault_index.entrypoints.web.refusal import NOTED, Refusal
from vault_index.entrypoints.web.vault_client import VaultClient
from vault_index.model_http import is_this_machine

if TYPE_CHECKING:
    from vault_index.vault import Vault

END_SECONDS = 8  # for what is being answered when the server ends: a service manager waits for ten


def serve(
    vault: Vault,
    host: str,
    port: int,
    token: str,
    announce: Callable[[str, str], None],
    note: Callable[[str], None],
) -> None:
    """Serve a vault until SIGTERM or Ctrl-C; `announce` takes the address once it listens, and a
    code for its pages: see `page_key`; "" where other machines may ask, whose pages get no key.

    Raises VaultError where it cannot listen, or may not without a token.
    """
    guard.rules_for(host, port, token)
    end = _End()
    for number in (signal.SIGTERM, signal.SIGINT):  # uvicorn ends, then sends them once more
        signal.signal(number, end)
    with guard.listening(host, port) as ours:
        port = ours.getsockname()[1]
        server = _server(vault, host, port, token, note)
        address = guard.address_of(host, port)
        announce(address, page_code.new_code(token, address) if is_this_machine(host) else "")
        end.attach(server).run(sockets=[ours])


def guarded(
    client: VaultClient, host: str, port: int, token: str, note: Callable[[str], None]
) -> guard.Guard:
    """Return the application behind its guard; its pages get keys where this machine alone may ask."""
    keys = PageKeys(token, guard.address_of(host, port)) if is_this_machine(host) else None
    rules = replace(guard.rules_for(host, port, token), needs_token=needs_token, max_body=MAX_BODY)
    rules = replace(rules, accepts=keys.accepts) if keys else rules
    return guard.Guard(cast("guard.App", application(client, note, keys)), rules)


def _server(vault: Vault, host: str, port: int, token: str, note: Callable[[str], None]) -> _Server:
    client = VaultClient(vault)
    config = guard.settings(
        guarded(client, host, port, token, note),
        log_config=None,
        lifespan="on",
        timeout_graceful_shutdown=END_SECONDS,
    )
    logging.basicConfig(handlers=[_bugs(note, client)])
    threading.Thread(target=_begin, args=(client,), daemon=True, name="begin").start()
    return _Server(config, client)


def _bugs(note: Callable[[str], None], client: VaultClient) -> logging.Handler:
    """Return a handler for errors outside the application: before it, or after its answer began.

    A server that ends gives up what it was answering, which is no error.
    """

    def is_news(record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        return not (client.is_ending or NOTED in getattr(error, "__notes__", ()))

    handler = bug.Handler(note, logging.ERROR)
    handler.addFilter(is_news)
    return handler


class _Server(uvicorn.Server):
    """A server that waits neither for streams without an end nor for models when it ends."""

    def __init__(self, config: uvicorn.Config, client: VaultClient) -> None:
        super().__init__(config)
        self._client = client

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await vault_client.end(self._client)
        await super().shutdown(sockets)


class _End:
    """A signal handler that ends a server, also one that comes before uvicorn has its own."""

    def __init__(self) -> None:
        self._is_asked = False
        self._server: uvicorn.Server | None = None

    def __call__(self, *_: object) -> None:
        self._is_asked = True
        if self._server is not None:
            self._server.should_exit = True

    def attach(self, server: uvicorn.Server) -> uvicorn.Server:
        """Return a server, which ends at once where a signal came already."""
        self._server = server
        server.should_exit = self._is_asked
        return server


def _begin(client: VaultClient) -> None:
    with suppress(Refusal):
        client.ask(api.search.health())
        search.prepare(client)
