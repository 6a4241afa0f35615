"""`lessons show`."""

from __future__ import annotations

import click

from vault_index import client
from vault_index.entrypoints.cli import asking, completion, output, status
from vault_index.errors import VaultError


@click.command("show", epilog="Example: lessons show devops/ci-cd/node-heap-out-of-memory")
@completion.lesson(required=False)
@click.option("--at", metavar="REV", help="As it was at a commit, tag or date; deleted ones, too.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(named: str | None, lesson_id: str | None, at: str | None, as_json: bool) -> None:
    """Print one lesson.

    ID is its id, its path from here or from the vault, or the end of either. The beginning of such an
    end is enough, if it is that of one lesson only. Without ID you pick one.
    """
    from vault_index.lesson.category import marked

    lesson_id = lesson_id or asking.pick(named)
    if at is None:
        try:
            entry = asking.entry(named, lesson_id, prompts=as_json)
        except VaultError as error:
            raise _as_deleted(named, lesson_id, error) from None
    else:
        values = {"name": client.name_in_vault(named, lesson_id)}
        entry = asking.ask_as_of(named, at, "show", values)["entry"]
    outcome = {} if at else asking.ask(named, "outcome", {"id": entry["id"]}, as_is=True)["outcome"]
    if as_json:
        entry |= {"outcome": outcome} if outcome else {}
        entry.pop("file_hash", None)
        output.json(entry)
        return
    output.say(output.styled(entry["title"], bold=True))
    by = entry["author"] or "not committed"
    when = entry["updated_at"] or entry["created_at"]
    filed = ", ".join(marked(entry["categories"], entry["filed_by"]))
    output.say(f"[{filed}] {entry['path']} · {by}" + (f", {when[:10]}" if when else ""))
    if outcome and outcome["injected"]:
        output.say(status.outcome_line(outcome))
    if entry["withheld"]:
        asking.note(f"warning: hooks leave it out: {entry['withheld']}")
    output.say()
    output.text(entry["text"])


def _as_deleted(named: str | None, lesson_id: str, error: VaultError) -> VaultError:
    """Return an error that says in which commit a lesson was deleted, if it was; else the same error."""
    from vault_index.share import history

    if not error.message.startswith("no lesson "):
        return error
    gone = history.deleted(client.open_vault(named), client.name_in_vault(named, lesson_id))
    if gone is None:
        return error
    commit, id, _ = gone
    message = f"{id} was deleted in commit {commit[:10]}"
    return VaultError(message, f"lessons show {id} --at {commit[:10]}~")
