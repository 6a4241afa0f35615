"""`lessons confirm`."""

from __future__ import annotations

import click

from vault_index import client
from vault_index.entrypoints.cli import asking, completion, output
from vault_index.entrypoints.cli.options import json_option
from vault_index.errors import VaultError


@click.command("confirm", epilog="Example: lessons confirm devops/ci-cd/node-heap-out-of-memory")
@click.argument(
    "lesson_ids", metavar="ID...", nargs=-1, required=True, shell_complete=completion.ids
)
@json_option
@click.pass_obj
def command(named: str | None, lesson_ids: tuple[str, ...], as_json: bool) -> None:
    """Note in lessons that they hold; give held ones to agents.

    It writes `confirmed: DATE` into the frontmatter, of a section into that of its whole file. From
    then on `lessons stale` compares a lesson with the repository of that day. A lesson that hooks hold
    back, because it reads like orders to an agent, they give again: to your agents, for this text.
    """
    names = [client.name_in_vault(named, lesson_id) for lesson_id in lesson_ids]
    answer = asking.ask(named, "confirm", {"names": names})
    if as_json:
        output.json(answer)
    else:
        for lesson in answer["confirmed"]:
            said = "confirmed" if lesson["changed"] else "was confirmed today already:"
            output.say(f"{said} {lesson['id']}")
            if lesson["released"]:
                output.say(f"agents get it from now on: {lesson['path']}")
    if answer["failed"]:
        hint = "correct these files, then confirm them again"
        raise VaultError("; ".join(answer["failed"]), hint)
