"""`lessons rm`."""

from __future__ import annotations

import sys

import click

from vault_index.entrypoints.cli import asking, completion, output
from vault_index.errors import VaultError


@click.command("rm", epilog="Example: lessons rm staging-deploys-need-the-vpn --yes")
@completion.lesson()
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def command(named: str | None, lesson_id: str, yes: bool) -> None:
    """Delete a lesson, its file or its section, after asking."""
    from vault_index.search import names

    entry = asking.entry(named, lesson_id, names_only=True, prompts=False)
    if yes and names.is_beginning(lesson_id, entry["id"], entry["path"]):
        hint = f"lessons rm {entry['id']} --yes"
        raise VaultError(f"{lesson_id!r} is only the beginning of a name", hint)
    if not yes:
        if not sys.stdin.isatty():
            raise VaultError(f"{entry['id']} is not deleted without asking", "pass --yes")
        if not output.confirm(f"delete {entry['title']!r} ({entry['path']})?"):
            asking.note("nothing deleted")
            return
    deleted = asking.ask(named, "delete", {"name": entry["id"], "shown": entry})
    kept = ", with its file" if deleted["removed"] else ""
    output.say(f"deleted {entry['id']}{kept}")
