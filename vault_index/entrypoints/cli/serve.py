"""`lessons serve`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from vault_index import client
from vault_index.entrypoints.cli import asking, output
from vault_index.errors import VaultError

DEFAULT_PORT = 7731


@click.command("serve", epilog="Example: lessons serve --port 7731")
@click.option(
    "--port",
    default=DEFAULT_PORT,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="Where to listen; 0 takes a free one and prints it.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    help="The file with the token of clients; without: ~/.lessons/token, made if missing.",
)
@click.pass_obj
def command(named: str | None, port: int, host: str, token_file: Path | None) -> None:
    """Serve lessons and journal over HTTP, to this machine.

    Its routes are described at /docs. Writes and the journal need the token; with a --host that other
    machines reach, every request needs that of --token-file.
    """
    try:
        from vault_index.entrypoints import guard, token
        from vault_index.entrypoints.web import server
    except ModuleNotFoundError as error:
        raise VaultError(
            f"`lessons serve` needs the package {error.name}",
            "install it beside this program: pip install 'fastapi>=0.130' 'uvicorn>=0.40'",
        ) from None
    vault = client.open_vault(named)
    secret = token.read(token_file) if token_file else ""
    if not secret and guard.is_loopback(host):
        secret = token.of(vault.config.home)

    def announce(address: str) -> None:
        if sys.stdout.isatty() or not port:  # a pipe reads only the port that nobody chose
            output.say(f"serving {vault.root} on {address}, described at {address}/docs")

    server.serve(vault, host, port, secret, announce, asking.note)
