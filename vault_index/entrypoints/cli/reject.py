"""`lessons reject`."""

from __future__ import annotations

from typing import Any

import click

from vault_index.entrypoints.cli import asking, completion, deciding, output
from vault_index.entrypoints.cli.options import json_option


@click.command("reject", epilog="Example: lessons reject 3f9a")
@completion.several_proposals()
@deciding.session_option
@json_option
@click.pass_obj
def command(named: str | None, proposal_ids: tuple[str, ...], session: str, as_json: bool) -> None:
    """Remove proposals for good: nothing like them comes back.

    ID is the id of a proposal or its beginning: see `lessons proposals`. Its text is not kept.
    """

    def reject(id: str) -> dict[str, Any]:
        return asking.ask(named, "reject proposal", {"id": id})

    def show(rejected: dict[str, Any]) -> None:
        output.say(f"rejected {rejected['id']}: {rejected['title']}")

    deciding.each(named, proposal_ids, session, as_json, reject, show)
