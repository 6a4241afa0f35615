"""`lessons journal import`."""

from __future__ import annotations

from typing import Any

import click

from vault_index.entrypoints.cli import asking, moments, output
from vault_index.entrypoints.cli.options import count


@click.command("import", epilog="Example: lessons journal import --since 90d --dry-run")
@click.option(
    "--since",
    metavar="DATE",
    default="30d",
    show_default=True,
    help="Sessions that went on since: 90d, 8w, 2026-03-31, or all.",
)
@click.option("--project", default="", help="Only sessions of this folder, or of this project.")
@click.option("--dry-run", is_flag=True, help="Only show what it would take in.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(named: str | None, since: str, project: str, dry_run: bool, as_json: bool) -> None:
    """Take in the sessions that agents keep here.

    Reads the transcripts of Claude Code and Codex CLI, changes none, and keeps what it took in under
    ~/.lessons/journal, without secrets. Stop it and run it again as you like.
    """
    values = {
        "since": "" if since == "all" else moments.since(since),
        "project": project,
        "dry_run": dry_run,
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
    projects = answer["projects"]
    if dry_run and projects:
        width = max(len(row["project"]) for row in projects)
        for row in projects:
            sessions = count(row["sessions"], "session")
            output.row(f"{row['project']:<{width}}  {sessions:>13}  {row['mb']:8.1f} MB")
    for problem in answer["problems"]:
        asking.note(f"warning: {problem}")
    sessions, mb = count(answer["sessions"], "session"), f"{answer['mb']:.1f} MB"
    of = f"{sessions} of {count(len(projects), 'project')}, {mb}"
    if dry_run:
        output.say(f"{of}; nothing was taken in")
        return
    if not answer["sessions"] and not answer["same"]:
        output.say("no sessions")
        return
    parts = [f"{of}: {count(answer['records'], 'record')}" if answer["sessions"] else "nothing new"]
    parts += [f"{answer['same']} there already"] if answer["same"] else []
    parts += [f"in {answer['seconds']:.1f} s"]
    output.say(", ".join(parts))
