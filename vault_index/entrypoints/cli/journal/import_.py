"""`lessons journal import`."""

from __future__ import annotations

from typing import Any

import click

from vault_index.entrypoints.cli import asking, moments, output
from vault_index.entrypoints.cli.journal import options
from vault_index.entrypoints.cli.options import count


@click.command("import", epilog="Example: lessons journal import --since 90d --dry-run")
@click.option(
    "--since",
    metavar="DATE",
    default="30d",
    show_default=True,
    help="Sessions that went on since: 90d, 8w, 2026-03-31, or all.",
)
@click.option("-p", "--project", help="Only of this project: a name or a folder.")
@click.option("--dry-run", is_flag=True, help="Only show what it would take in.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(
    named: str | None, since: str, project: str | None, dry_run: bool, as_json: bool
) -> None:
    """Take in the sessions that agents keep here.

    Reads the transcripts of Claude Code and Codex CLI, changes none, and keeps what it took in under
    ~/.lessons/journal, without secrets. Stop it and run it again as you like.
    """
    values = {
        "since": "" if since == "all" else moments.since(since),
        "dry_run": dry_run,
        **options.where(project, all_projects=not project),
    }
    try:
        answer = asking.ask(named, "journal import", values)
    except KeyboardInterrupt:
        asking.note("stopped; what was taken in stays, and the next import goes on from there")
        raise
    if as_json:
        output.json(answer)
        return
    _show(answer, dry_run)


def _show(answer: dict[str, Any], dry_run: bool) -> None:
    projects = sorted(answer["projects"].items(), key=lambda item: (-item[1], item[0]))
    width = max((len(name) for name, _ in projects), default=0)
    for name, sessions in projects if dry_run else ():
        output.row(f"{name:<{width}}  {count(sessions, 'session')}")
    for problem in answer["problems"]:
        asking.note(f"warning: {problem}")
    for why, transcripts in sorted(answer["nothing"].items()):
        asking.note(f"note: nothing to keep of {count(transcripts, 'transcript')}: {why}")
    if answer["older"]:
        asking.note(f"note: {count(answer['older'], 'older transcript')}: --since all")
    there = [f"{answer['unchanged']} there already"] if answer["unchanged"] else []
    if not answer["sessions"]:
        output.say(", ".join(["nothing new", *there]))
        return
    parts = [f"{count(answer['sessions'], 'session')} of {count(len(projects), 'project')}"]
    parts += [count(answer["records"], "record"), f"{answer['bytes'] / 1e6:.1f} MB read"]
    ended = "; nothing was taken in" if dry_run else f" in {answer['seconds']:.1f} s"
    output.say(", ".join([*parts, *there]) + ended)
