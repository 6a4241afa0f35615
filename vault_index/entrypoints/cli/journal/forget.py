"""`lessons journal forget`."""

from __future__ import annotations

import sys

import click

from vault_index.entrypoints.cli import asking, moments, output
from vault_index.entrypoints.cli.options import count


@click.command("forget", epilog="Example: lessons journal forget --session 3f2a91c0")
@click.option("--session", default="", help="A session, by its id or the beginning of it.")
@click.option("--project", default="", help="All sessions of a project.")
@click.option("--before", metavar="DATE", default="", help="What ended before: 90d, 2026-03-31.")
@click.option("--matching", metavar="TEXT", default="", help="The records with this text.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def command(
    ctx: click.Context,
    session: str,
    project: str,
    before: str,
    matching: str,
    yes: bool,
    as_json: bool,
) -> None:
    """Take out files, rows and vectors, and prove it.

    With several options, what all of them name. The agent's own transcripts stay: they are its.
    """
    values = {
        "session": session,
        "project": project,
        "before": moments.since(before) if before else "",
        "matching": matching,
    }
    chosen = ", ".join(f"{name} {value}" for name, value in values.items() if value)
    if not chosen:
        raise click.UsageError(
            "name a --session, a --project, a time --before or a text --matching"
        )
    if not yes and sys.stdin.isatty() and not output.confirm(f"forget {chosen}?"):
        raise click.Abort
    answer = asking.ask(ctx.obj, "journal forget", values)
    if as_json:
        output.json(answer)
        return
    if not answer["records"] and not answer["sessions"]:
        output.say("nothing in the journal matches")
        if not answer["files_searched"]:
            return
    else:
        sessions = f" and {count(answer['sessions'], 'session')}" if answer["sessions"] else ""
        output.say(f"forgot {count(answer['records'], 'record')}{sessions}")
    if answer["beside"]:
        output.say(
            f"removed {count(answer['beside'], 'file')} of proposals and conversations made of it"
        )
    output.say(answer["proof"])
    if answer["left"]:
        ctx.exit(1)
