"""`lessons review`."""

from __future__ import annotations

import sys
from typing import Any

import click

from vault_index.entrypoints.cli import asking, completion, output, proposal_card
from vault_index.entrypoints.cli.options import json_option


@click.command("review", epilog="Example: lessons review --commit")
@completion.proposal(required=False)
@click.option("--session", default="", metavar="ID", help="Only what this session taught.")
@click.option("--commit", is_flag=True, help="Commit the file of each accepted one, and no other.")
@json_option
@click.pass_obj
def command(
    named: str | None, proposal_id: str | None, session: str, commit: bool, as_json: bool
) -> None:
    """Review what waits: accept, edit, merge or reject each.

    At a terminal one after the other, by single keys; in a pipe they are listed. ID is the id of a
    proposal or its beginning, and --session the id that `lessons proposals` shows, or its beginning.
    """
    values = {"id": proposal_id or "", "session": session}
    if as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        _list(asking.ask(named, "review", values)["proposals"], as_json)
        return
    waiting = asking.ask(named, "proposals", values)["proposals"]
    if not waiting:
        asking.note("no proposals wait")
        return
    from vault_index.entrypoints.cli import reviewing

    reviewing.Review(named, [each["id"] for each in waiting], commit).run()


def _list(proposals: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        output.json(proposals)
        return
    if not proposals:
        asking.note("no proposals wait")
    for number, proposal in enumerate(proposals):
        if number:
            output.say()
        proposal_card.show(proposal)
