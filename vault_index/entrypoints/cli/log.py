"""`lessons log`."""

from __future__ import annotations

import click

from vault_index import client
from vault_index.entrypoints.cli import asking, completion, output


@click.command("log", epilog="Example: lessons log devops/ci-cd/node-heap-out-of-memory")
@completion.lesson()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(named: str | None, lesson_id: str, as_json: bool) -> None:
    """Show the commits that changed a lesson, newest first."""
    history = asking.ask(named, "log", {"name": client.name_in_vault(named, lesson_id)})
    if history["deleted_in"]:
        asking.note(f"note: {history['id']} was deleted in commit {history['deleted_in'][:10]}")
    if as_json:
        output.json(history["edits"])
        return
    for edit in history["edits"]:
        commit = output.styled(edit["commit"][:10], dim=True)
        output.row(commit, f"  {edit['when'][:10]}  {edit['who']}: {edit['why']}")
    if not history["edits"]:
        asking.note(f"{history['path']} is not committed")
