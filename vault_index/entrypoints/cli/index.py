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
    """Bring the index up to date with the lesson files."""
    if only_floor:
        from vault_index.client import here

        here.fit_floor(client.open_vault(named), client.silent)
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
    for problem in stats["problems"]:
        output.say(f"{problem['path']}:{problem['line']}: {problem['message']}")
