"""`lessons serve`."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vault_index import client
from vault_index.entrypoints.cli import asking, output
from vault_index.errors import VaultError

if TYPE_CHECKING:
    from vault_index.vault import Vault

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 7731


@click.command("serve", epilog="Example: lessons serve --open")
@click.option(
    "--port",
    default=DEFAULT_PORT,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="Where to listen; 0 takes a free one and prints it.",
)
@click.option("--host", default=DEFAULT_HOST, show_default=True, help="The address to listen on.")
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    help="The file with the token of clients; without: ~/.lessons/token, made if missing.",
)
@click.option("--open", "opens", is_flag=True, help="Open the page in your browser.")
@click.pass_obj
def command(named: str | None, port: int, host: str, token_file: Path | None, opens: bool) -> None:
    """Serve the page and the HTTP routes to this machine.

    --open opens the page with a key, so that it shows the journal and may write. The routes are
    described at /openapi.json. Writes and the journal need the token; with a --host that other machines
    reach, every request needs that of --token-file, and pages get no key.
    """
    try:
        from vault_index.entrypoints import guard, listening
        from vault_index.entrypoints.web import page_key, server
    except ModuleNotFoundError as error:
        raise VaultError(
            f"`lessons serve` needs the package {error.name}",
            "install it beside this program: pip install 'fastapi>=0.130' 'jinja2>=3.1' "
            "'uvicorn>=0.40'",
        ) from None
    if opens and not guard.is_loopback(host):
        raise VaultError(
            f"the page opens on this machine only, not on {host}",
            "start without --open, or without --host",
        )
    if host.lower() == "localhost":  # it has two addresses: at the other, any program may listen
        host = DEFAULT_HOST
    vault = client.open_vault(named)
    secret = listening.read(token_file) if token_file else ""
    if not secret and guard.is_loopback(host):
        secret = listening.of(vault.config.home)
    address = server.address_of(host, port)
    code = page_key.ask_running(address, secret, str(vault.root)) if opens and port else ""
    if code:
        _open(f"{address}/#once={code}")
        return

    def announce(address: str, code: str) -> None:
        page = f"{address}/#once={code}"
        if opens:  # while the server begins
            threading.Thread(target=_open, args=(page,), daemon=True, name="browser").start()
        if sys.stdout.isatty() or not port:  # a pipe reads only the port that nobody chose
            _say(vault, address, "" if opens else page)

    server.serve(vault, host, port, secret, announce, asking.note)


def _say(vault: Vault, address: str, page: str) -> None:
    """Print where it serves, and at a terminal the address of the page, which holds a code."""
    output.say(f"serving {vault.root} on {address}, described at {address}/openapi.json")
    if page and sys.stdout.isatty():
        output.say(f"its page, for two minutes: {page}")


def _open(page: str) -> None:
    """Open a page in the user's browser; where there is none, print its address."""
    import webbrowser

    if not webbrowser.open(page):
        output.say(f"no browser here; open this within two minutes: {page}")
