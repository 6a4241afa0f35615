"""`lessons sync`."""

from __future__ import annotations

import click

from vault_index.entrypoints.cli import asking, output
from vault_index.entrypoints.cli.options import count


@click.command("sync", epilog="Example: lessons sync")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(named: str | None, as_json: bool) -> None:
    """Fetch, put your commits on top, push, reindex.

    Nothing is forced, a conflict changes nothing here, and uncommitted changes stay as they are.
    """
    done = asking.ask(named, "sync")
    if as_json:
        output.json(done)
        return
    output.say(f"fetched {count(done['fetched'], 'commit')} of {done['remote']}")
    if done["rebased"]:
        output.say(f"put {count(done['rebased'], 'commit')} of yours on top")
    if done["merged"]:
        output.say(f"merged {count(done['merged'], 'commit')} of yours, as a rebase keeps less")
    if done["dropped"]:
        output.say(f"dropped {count(done['dropped'], 'commit')} that {done['remote']} took back")
    output.say(f"indexed {count(done['lessons'], 'lesson')}")
    output.say(f"pushed {count(done['pushed'], 'commit')}" if done["pushed"] else "nothing to push")
    if done["uncommitted"]:
        were = "was" if done["uncommitted"] == 1 else "were"
        output.say(f"{count(done['uncommitted'], 'uncommitted file')} {were} not shared")
