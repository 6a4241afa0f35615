"""The server over HTTP, on loopback: streamable HTTP at `/mcp`, behind the guard of every HTTP door.

The lessons of the server's vault are read without a token here. What writes, reads the journal or names
another project needs it with the request, and elsewhere every request does. Which tool a request calls is
known only to the SDK, so the tools' server asks.
"""

from __future__ import annotations

import contextlib
import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

import uvicorn

from vault_index.entrypoints.guard import App, Guard, rules_for
from vault_index.entrypoints.listening import listening
from vault_index.entrypoints.mcp.answering import LessonsServer

PATH = "/mcp"
END_SECONDS = 2  # for what is being answered when the server ends; a stream never ends by itself
MAX_SESSIONS = 256


@dataclass(frozen=True, slots=True)
class Token:
    """What a request of the server's user carries."""

    value: str

    def is_in(self, headers: Mapping[str, str] | None) -> bool:
        """Whether a request with these headers carries it."""
        kind, _, given = (headers or {}).get("authorization", "").partition(" ")
        same = hmac.compare_digest(given.strip().encode(), self.value.encode())
        return bool(self.value) and kind.lower() == "bearer" and same


def serve(
    server: LessonsServer, host: str, port: int, token: str, say: Callable[[str], None]
) -> None:
    """Serve until the process is told to end. Raises VaultError where it cannot listen."""
    rules_for(host, port, token)  # refuses an address that needs a token, before anyone can connect
    with listening(host, port) as ours:
        port = ours.getsockname()[1]
        rules = rules_for(host, port, token, needs_token=lambda _scope: False)
        app = server.streamable_http_app(
            streamable_http_path=PATH, max_sessions=MAX_SESSIONS, host=host
        )
        config = uvicorn.Config(
            Guard(cast("App", app), rules),
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=END_SECONDS,
        )
        say(f"serving MCP on http://{f'[{host}]' if ':' in host else host}:{port}{PATH}")
        with contextlib.suppress(KeyboardInterrupt):  # uvicorn ends by itself, then raises it
            uvicorn.Server(config).run(sockets=[ours])
