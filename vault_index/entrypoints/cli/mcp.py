"""`lessons mcp`."""

from __future__ import annotations

import gc

import click

from vault_index.errors import VaultError


@click.command("mcp", epilog="Example: claude mcp add lessons -- lessons mcp")
@click.pass_obj
def command(named: str | None) -> None:
    """Serve agents over MCP, on stdin and stdout.

    It looks for the vault around the folder in which the agent started it.
    """
    gc.disable()  # what the SDK loads stays: looking through it again takes a tenth of the start
    try:
        from vault_index.entrypoints.mcp import server
    except ModuleNotFoundError as error:
        raise VaultError(
            f"`lessons mcp` needs {error.name}", "install it: pip install 'vault-index[mcp]'"
        ) from None
    from vault_index.entrypoints.mcp.agent import Agent

    serving = server.build(Agent.here(named))
    gc.freeze()
    gc.enable()
    serving.run()
