"""`lessons mcp`."""

from __future__ import annotations

import gc
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import click

from vault_index.entrypoints.cli import asking
from vault_index.errors import VaultError

DEFAULT_PORT = 7732  # beside that of `lessons serve`


@click.command(
    "mcp",
    epilog="Example: lessons mcp, as an agent starts it: claude mcp add lessons -- lessons mcp",
)
@click.option(
    "--tools",
    type=click.Choice(["lessons", "journal", "all"]),
    default="all",
    show_default=True,
    help="Which tools; those of the journal are there while it is on.",
)
@click.option("--http", is_flag=True, help="Serve HTTP instead of stdin and stdout.")
@click.option("--host", default="127.0.0.1", show_default=True, help="For HTTP: where to listen.")
@click.option(
    "--port",
    default=DEFAULT_PORT,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="For HTTP; 0 takes a free one.",
)
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    help="For HTTP: the file with the token; without: ~/.lessons/token.",
)
@click.pass_obj
def command(
    named: str | None, tools: str, http: bool, host: str, port: int, token_file: Path | None
) -> None:
    """Serve agents over MCP, on stdin and stdout.

    It looks for the vault around the folder in which the agent started it. Over HTTP, lessons are read
    without the token and all else needs it; where other machines can ask, every request needs that of
    --token-file.
    """
    if not http:
        # A thread waits for stdin, which Python would wait for; nothing has to be put away at the end.
        # Before the imports: an interrupt in one of their callbacks would be lost.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.disable()  # what the SDK loads stays: looking through it again takes a tenth of the start
    try:
        from vault_index.entrypoints.mcp import server
    except ModuleNotFoundError as error:
        raise VaultError(
            f"`lessons mcp` needs the package {error.name}",
            "install it beside this program: pip install 'mcp>=2.3' 'uvicorn>=0.40'",
        ) from None
    if http:
        _serve_http(named, tools, host, port, token_file)
        return
    from vault_index.entrypoints.mcp.agent import Agent

    if sys.stdin.isatty():
        asking.note("note: an agent starts this and speaks JSON on stdin; Ctrl-C ends it")
        asking.note("      to add it to Claude Code: claude mcp add lessons -- lessons mcp")
    serving = server.build(Agent.here(named), tools)
    _run(serving.run)


def _serve_http(
    named: str | None, tools: str, host: str, port: int, token_file: Path | None
) -> None:
    from vault_index import config
    from vault_index.entrypoints import guard, listening
    from vault_index.entrypoints.cli import output
    from vault_index.entrypoints.mcp import access, http, server
    from vault_index.entrypoints.mcp.agent import Agent

    secret = listening.read(token_file) if token_file else ""
    if not secret and guard.is_loopback(host):
        secret = listening.of(config.home_folder())
    agent = Agent.here(named, folders=False)
    serving = server.build(agent, tools, access.Access(secret))
    _run(http.serve, serving, host, port, secret, output.say)


def _run(serve: Callable[..., None], *values: object) -> None:
    gc.freeze()
    gc.enable()
    serve(*values)
