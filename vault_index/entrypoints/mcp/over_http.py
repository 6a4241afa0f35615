"""The server over HTTP, on loopback: streamable HTTP at `/mcp`, behind the guard of every HTTP door.

It keeps no session: each request stands for itself, so nobody can use up the sessions of others, and a
client outlives a restart.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import cast

import uvicorn
from starlette.responses import Response

from vault_index.entrypoints import guard
from vault_index.entrypoints.guard import App, Receive, Scope, Send
from vault_index.entrypoints.mcp.server import LessonsServer

PATH = "/mcp"
END_SECONDS = 2  # for what is being answered when the server ends; a stream never ends by itself


def serve(
    server: LessonsServer, host: str, port: int, token: str, say: Callable[[str], None]
) -> None:
    """Serve until the process is told to end. Raises VaultError where it cannot listen."""
    # refuses an address that needs a token, before anyone can connect
    guard.rules_for(host, port, token)
    with guard.listening(host, port) as ours:
        port = ours.getsockname()[1]
        rules = replace(guard.rules_for(host, port, token), every_request=True)
        app = server.streamable_http_app(streamable_http_path=PATH, stateless_http=True, host=host)
        config = guard.settings(
            guard.Guard(_posts(cast("App", app)), rules),
            log_level="error",  # not about each bad request: anybody could fill the log
            timeout_graceful_shutdown=END_SECONDS,
        )
        say(f"serving MCP on {guard.address_of(host, port)}{PATH}")
        with contextlib.suppress(KeyboardInterrupt):  # uvicorn ends by itself, then raises it
            uvicorn.Server(config).run(sockets=[ours])


def _posts(app: App) -> App:
    """Return an application without streams from the server: it says nothing unasked."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == PATH and scope["method"] != "POST":
            await Response(status_code=405, headers={"Allow": "POST"})(scope, receive, send)
            return
        await app(scope, receive, send)

    return answer
