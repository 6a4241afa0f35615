"""The commands that serve: mcp, serve, open."""

from __future__ import annotations

import shlex
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vault_index.entrypoints.cli import context, options, output
from vault_index.errors import VaultError

if TYPE_CHECKING:
    from vault_index.vault import Vault

DEFAULT_HOST = "127.0.0.1"
MCP_PORT = 7732  # beside the port of `lessons serve`


@options.command(
    "mcp",
    "lessons mcp, as an agent starts it: claude mcp add lessons -- lessons mcp",
    has_json=False,
)
@options.choice(
    "--tools",
    "lessons journal usual all",
    "Which tools; all: the timeline and each search of the journal by name as well.",
    default="usual",
)
@options.flag("--http", "Serve HTTP instead of stdin and stdout.")
@click.option("--host", default=DEFAULT_HOST, show_default=True, help="For HTTP: where to listen.")
@options.port(MCP_PORT, "For HTTP; 0 takes a free one.")
@options.token_file("For HTTP: the file with the token; without: ~/.lessons/token.")
def mcp_command(tools: str, http: bool, host: str, port: int, token_file: Path | None) -> None:
    """Serve agents over MCP, on stdin and stdout.

    It looks for the vault around the folder in which the agent started it. Over HTTP every request needs
    the token; where other machines can ask, it must be the token of --token-file.
    """
    if not http:
        # A thread waits for stdin, which Python would wait for; nothing has to be put away at the end.
        # Before the imports: an interrupt in one of their callbacks would be lost.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    import logging

    from vault_index.entrypoints import bug
    from vault_index.entrypoints.mcp.agent import ServedAgent
    from vault_index.entrypoints.mcp.tools import build

    logging.basicConfig(handlers=[bug.Handler(context.note)])  # else the SDK prints tracebacks

    if http:
        from vault_index import config
        from vault_index.entrypoints.mcp import over_http

        secret = _secret(token_file, host, config.home_folder())
        over_http.serve(
            build(ServedAgent.here(context.place()), tools), host, port, secret, output.say
        )
        return
    if sys.stdin.isatty():
        context.note("note: an agent starts this and speaks JSON on stdin; Ctrl-C ends it")
        context.note("      to add it to Claude Code: claude mcp add lessons -- lessons mcp")
    build(ServedAgent.here(context.place()), tools).run()


def _secret(token_file: Path | None, host: str, home: Path) -> str:
    """Return the token in the user's file, else in `home` for this machine, else ""."""
    from vault_index.entrypoints.token import load_token, read_token
    from vault_index.model_http import is_this_machine

    if token_file and (token := read_token(token_file)):
        return token
    return load_token(home) if is_this_machine(host) else ""


HTTP_PORT = 7731


@options.command("serve", "lessons serve --open", has_json=False)
@options.port(HTTP_PORT, "Where to listen; 0 takes a free one and prints it.")
@click.option("--host", default=DEFAULT_HOST, show_default=True, help="The address to listen on.")
@options.token_file(
    "The file with the token of clients; without: ~/.lessons/token, made if missing."
)
@options.flag("--open opens", "Open the page in your browser.")
@click.option("--background", "how", flag_value="background", help="Go on without this terminal.")
@click.option("--stop", "how", flag_value="stop", help="End what --background serves.")
@click.option("--at-login", "how", flag_value="at-login", help="Serve from each login on.")
@options.flag("--remove", "With --at-login: take it back.")
@options.yes
@options.published
def serve_command(
    port: int,
    host: str,
    token_file: Path | None,
    opens: bool,
    how: str | None,
    remove: bool,
    yes: bool,
) -> None:
    """Serve the page and the HTTP routes to this machine.

    --open opens the page with a key, so that it shows the journal and may write. The routes are
    described at /openapi.json. Writes and the journal need the token; with a --host that other machines
    reach, every request needs the token of --token-file, and pages get no key.

    --background leaves a server behind, one a user, until --stop; it goes on after an upgrade.
    --at-login shows and writes a file for systemd or launchd, which has that done at each login.
    """
    if how and hasattr(context.place(), "uri"):
        raise click.UsageError(f"--index goes without --{how}")
    if how and (host != DEFAULT_HOST or token_file):
        raise click.UsageError(f"--{how} serves this machine only, without --host and --token-file")
    if remove and how != "at-login":
        raise click.UsageError("--remove goes with --at-login")
    if how == "stop":
        from vault_index.entrypoints import serving

        stopped = serving.stop()
        output.say(
            f"stopped serving {stopped}" if stopped else "nothing is served in the background"
        )
    elif how == "at-login":
        _at_login(context.vault(), port or HTTP_PORT, remove=remove, yes=yes)
    else:
        _serve(port, host, token_file, opens=opens, background=how == "background")


def _serve(
    port: int,
    host: str,
    token_file: Path | None,
    *,
    opens: bool,
    background: bool,
    or_free: bool = False,
) -> None:
    from vault_index.entrypoints import page_code, serving
    from vault_index.model_http import is_this_machine

    if opens and not is_this_machine(host):
        raise VaultError(
            f"the page opens on this machine only, not on {host}",
            "start without --open, or without --host",
        )
    if host.lower() == "localhost":  # it has two addresses: at the other, any program may listen
        host = DEFAULT_HOST
    vault = context.vault()
    secret = _secret(token_file, host, vault.config.home)
    if background:
        address, began = serving.begin(vault, port, or_free=or_free)
        verb = "serving" if began else "already serving"
        end = "until `lessons serve --stop`" if serving.is_running() else "at a terminal"
        output.say(f"{verb} {vault.root} on {address}, {end}")
        if opens:
            _open(f"{address}/#once={page_code.new_code(secret, address)}")
        return
    from vault_index.entrypoints.web import server

    def announce(address: str, code: str) -> None:
        serving.note(vault, address)
        page = f"{address}/#once={code}"
        if sys.stdout.isatty() or not port:  # a pipe reads only the port that nobody chose
            output.say(f"serving {vault.root} on {address}, described at {address}/openapi.json")
        if sys.stdout.isatty() and not opens:  # a code is for no log
            output.say(f"its page, for two minutes: {page}")
        if opens:  # while the server begins
            threading.Thread(target=_open, args=(page,), daemon=True, name="browser").start()

    server.serve(vault, host, port, secret, announce, context.note)


@options.command("open", "lessons open", has_json=False)
def open_command() -> None:
    """Open the page of the vault in your browser.

    A server in the background serves it, until `lessons serve --stop`; on a free port where another
    program has 7731.
    """
    _serve(HTTP_PORT, DEFAULT_HOST, None, opens=True, background=True, or_free=True)


def _at_login(vault: Vault, port: int, *, remove: bool, yes: bool) -> None:
    """Show the file that serves from the login on, write it, and put it in force where that works."""
    from vault_index.entrypoints import at_login

    file = at_login.login_file(vault.root, port)
    if remove:
        output.say(f"removed {file.path}" if file.remove() else f"there is no {file.path}")
        return
    output.say(f"{file.path}:")
    for line in file.text.splitlines():
        output.say(f"  {line}".rstrip())
    if not yes and sys.stdin.isatty() and not output.confirm("write it?"):
        context.note("nothing written")
        return
    file.write()
    if why := file.put_in_force():
        context.note(f"written, and not in force: {why}")
        context.note(f"to enable it: {' && '.join(map(shlex.join, file.enable))}")
        return
    output.say(f"serving {vault.root} on http://{DEFAULT_HOST}:{port}, now and at each login")


def _open(page: str) -> None:
    import webbrowser

    if not webbrowser.open(page):
        output.say(f"no browser here; open this within two minutes: {page}")
