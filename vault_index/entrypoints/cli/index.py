"""`lessons index`."""

from __future__ import annotations

import click

from vault_index import client
from vault_index.entrypoints.cli import asking, output
from vault_index.entrypoints.cli.options import json_option


@click.command("index", epilog="Example: lessons index --rebuild")
@click.option("--rebuild", is_flag=True, help="Build a new index beside it, then swap.")
@click.option("--no-wait", is_flag=True, help="Do nothing if another process is indexing.")
@click.option("--no-fetch", is_flag=True, hidden=True)  # for the watcher, which does it beside this
@click.option("--floor", "only_floor", is_flag=True, hidden=True)  # for the watcher
@json_option
@click.pass_obj
def command(
    named: str | None,
    rebuild: bool,
    no_wait: bool,
    no_fetch: bool,
    only_floor: bool,
    as_json: bool,
) -> None:
    """Bring the index up to date with the lesson files.

    --rebuild also builds the index of the journal, from its session files.
    """
    if only_floor:
        from vault_index.client import here

        here.fit_floor(client.open_vault(named), client.silent)
        return
    built = _rebuild_journal(named) if rebuild and not no_fetch else ""
    if built and not _has_vault(named):
        output.say(built)
        return
    values = {
        "rebuild": rebuild,
        "wait": not no_wait,
        "fetch": not no_fetch,
        "read_all": not no_wait,
    }
    stats = asking.ask(named, "index", values)
    summary = stats.pop("summary")
    if as_json:
        output.json(stats)
        return
    if stats["busy"]:
        output.say("another process is indexing")
        return
    output.say(summary)
    if stats["rebuilt"]:
        output.say(f"built from scratch: {stats['rebuilt']}")
    if built:
        output.say(built)
    for problem in stats["problems"]:
        output.say(f"{problem['path']}:{problem['line']}: {problem['message']}")


def _has_vault(named: str | None) -> bool:
    """Whether there is a vault to index; one that is named must be there."""
    from vault_index.errors import NoVaultError

    try:
        client.open_vault(named)
    except NoVaultError:
        return named is not None
    return True


def _rebuild_journal(named: str | None) -> str:
    """Build the index of the journal again and say so; "" without a journal."""
    from vault_index import config
    from vault_index.journal.journal import FOLDER

    if not (config.home_folder() / FOLDER).is_dir():
        return ""
    summary: str = asking.ask(named, "journal index", {"rebuild": True})["summary"]
    return f"journal: {summary}"
