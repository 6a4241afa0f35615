"""`lessons hook`."""

from __future__ import annotations

import click


@click.command("hook", epilog="Example: lessons hook < event.json")
def command() -> None:
    """Answer one hook event of an agent, JSON on stdin.

    Prints JSON or nothing.
    """
    from vault_index.entrypoints.hook import client

    client.main()
