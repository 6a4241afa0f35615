"""`lessons reject`."""

from __future__ import annotations

import click

from vault_index.entrypoints.cli import asking, completion, output
from vault_index.entrypoints.cli.options import json_option


@click.command("reject", epilog="Example: lessons reject 3f9a")
@completion.proposal()
@json_option
@click.pass_obj
def command(named: str | None, proposal_id: str, as_json: bool) -> None:
    """Remove a proposal for good: nothing like it comes back.

    ID is the id of a proposal or its beginning: see `lessons proposals`. Its text is not kept.
    """
    rejected = asking.ask(named, "reject proposal", {"id": proposal_id})
    if as_json:
        output.json(rejected)
        return
    output.say(f"rejected {rejected['id']}: {rejected['title']}")
