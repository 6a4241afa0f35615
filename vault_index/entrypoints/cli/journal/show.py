"""`lessons journal show`."""

from __future__ import annotations

import click

from vault_index.entrypoints.cli import asking, output
from vault_index.entrypoints.cli.journal import lines


@click.command("show", epilog="Example: lessons journal show 3f2a91c0-o3.2")
@click.argument("name", metavar="ID")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(named: str | None, name: str, as_json: bool) -> None:
    """Show a record, or a session, by its id.

    The beginning of a session's id is enough.
    """
    answer = asking.ask(named, "journal show", {"name": name})
    if as_json:
        output.json(answer)
        return
    session = answer["session"]
    if not name.startswith(answer["records"][0]["id"]) or len(answer["records"]) > 1:
        lines.print_session(session)
        output.say(output.styled(session["file"], dim=True))
    for number, record in enumerate(answer["records"]):
        if number or len(answer["records"]) > 1:
            output.say()
        lines.print_full(record)
