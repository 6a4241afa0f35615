"""`lessons accept`."""

from __future__ import annotations

from typing import Any

import click

from vault_index import client
from vault_index.entrypoints.cli import asking, completion, deciding, output
from vault_index.entrypoints.cli.options import from_here, json_option


@click.command("accept", epilog="Example: lessons accept 3f9a -c devops/ci-cd --commit")
@completion.several_proposals()
@deciding.session_option
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
    named: str | None,
    proposal_ids: tuple[str, ...],
    session: str,
    category: str,
    commit: bool,
    as_json: bool,
) -> None:
    """Make proposals lessons, and print their paths.

    ID is the id of a proposal or its beginning: see `lessons proposals`. One that is a change of a
    lesson changes it.
    """
    root = client.open_vault(named).root

    def accept(id: str) -> dict[str, Any]:
        values = {"id": id, "category": category, "commit": commit}
        return asking.ask(named, "accept proposal", values)

    def show(accepted: dict[str, Any]) -> None:
        output.say(from_here(root / accepted["path"], root))

    deciding.each(named, proposal_ids, session, as_json, accept, show)
