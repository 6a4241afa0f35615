"""`lessons accept`."""

from __future__ import annotations

import click

from vault_index import client
from vault_index.entrypoints.cli import asking, completion, output
from vault_index.entrypoints.cli.options import from_here, json_option


@click.command("accept", epilog="Example: lessons accept 3f9a -c devops/ci-cd --commit")
@completion.proposal()
@click.option(
    *("-c", "--category"),
    default="",
    help="Where it belongs, instead of where it says.",
    shell_complete=completion.categories,
)
@click.option("--commit", is_flag=True, help="Commit its file, and no other.")
@json_option
@click.pass_obj
def command(
    named: str | None, proposal_id: str, category: str, commit: bool, as_json: bool
) -> None:
    """Make a proposal a lesson, and print its path.

    ID is the id of a proposal or its beginning: see `lessons proposals`.
    """
    values = {"id": proposal_id, "category": category, "commit": commit}
    accepted = asking.ask(named, "accept proposal", values)
    if as_json:
        output.json(accepted)
        return
    root = client.open_vault(named).root
    output.say(from_here(root / accepted["path"], root))
