"""What several commands of the journal share: projects and times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from vault_index.entrypoints.cli import moments


def project(command: Any) -> Any:
    """Add `--project` and `--all-projects`."""
    named = click.option(
        *("-p", "--project"),
        help="Of this project: a name or a folder; without: of the one around here.",
    )
    every = click.option("--all-projects", is_flag=True, help="Of all projects.")
    return named(every(command))


since = click.option("--since", metavar="DATE", help="Only since: 90d, 8w, 2026-03-31, or all.")
until = click.option("--until", metavar="DATE", help="Only until then.")


def where(named: str | None, all_projects: bool) -> dict[str, Any]:
    """Return the project to look at: `project` is a name, `folder` one that it is in."""
    if named and all_projects:
        raise click.UsageError("--project and --all-projects exclude each other")
    if all_projects:
        return {"project": "", "folder": ""}
    path = Path(named).expanduser() if named else Path.cwd()
    if named and not ("/" in named and path.is_dir()) and named != ".":
        return {"project": named, "folder": ""}
    return {"project": "", "folder": str(path.absolute())}


def window(since: str | None, until: str | None) -> dict[str, Any]:
    """Return the times to look at: `since` is None for the usual window, "" for all."""
    began = None if since is None else "" if since == "all" else moments.since(since)
    return {"since": began, "until": moments.until(until) if until else ""}
