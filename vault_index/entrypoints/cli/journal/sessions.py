"""`lessons journal sessions`."""

from __future__ import annotations

import click

from vault_index.entrypoints.cli import asking, output
from vault_index.entrypoints.cli.journal import lines, options


@click.command("sessions", epilog="Example: lessons journal sessions --since 7d --all-projects")
@click.option(
    "-n", "--limit", default=20, show_default=True, type=click.IntRange(1), help="How many."
)
@options.project
@options.since
@options.until
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(
    named: str | None,
    limit: int,
    project: str | None,
    all_projects: bool,
    since: str | None,
    until: str | None,
    as_json: bool,
) -> None:
    """List sessions, the latest first."""
    values = {
        "limit": limit, **options.where(project, all_projects),
        **options.window("all" if since is None else since, until),
    }  # fmt: skip
    sessions = asking.ask(named, "journal sessions", values)["sessions"]
    if as_json:
        output.json(sessions)
        return
    for session in sessions:
        lines.print_session(session)
    if not sessions:
        asking.note("no session in the journal; get those of before with `lessons journal import`")
