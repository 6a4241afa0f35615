"""`lessons list`."""

from __future__ import annotations

import sys
from typing import Any

import click

from vault_index.entrypoints.cli import asking, completion, moments, output


@click.command("list", epilog="Example: lessons list -c devops --sort updated -n 20")
@click.option("-c", "--category", help="Only in or below it.", shell_complete=completion.categories)
@click.option("--tag", help="Only with this tag.", shell_complete=completion.tags)
@click.option(
    *("--type", "type_"),
    help="Only of this type: code_pattern, bug_fix, architecture, project_rule.",
    shell_complete=completion.types,
)
@click.option("--since", metavar="DATE", help="Only new or changed since: 2026-03-31, or 30d, 8w.")
@click.option(
    "--sort",
    default="id",
    show_default=True,
    type=click.Choice(["id", "title", "created", "updated", "confidence"]),
    help="Latest or highest first.",
)
@click.option("--reverse", is_flag=True, help="The other way round.")
@click.option("-n", "--limit", type=click.IntRange(1), help="How many; without: all.")
@click.option("--page", default=1, type=click.IntRange(1), help="Which page, each of -n lessons.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(
    named: str | None,
    category: str | None,
    tag: str | None,
    type_: str | None,
    since: str | None,
    sort: str,
    reverse: bool,
    limit: int | None,
    page: int,
    as_json: bool,
) -> None:
    """List the lessons."""
    if page > 1 and limit is None:
        raise click.UsageError("--page needs -n: how many a page has")
    values: dict[str, Any] = {
        "category": category,
        "tag": tag,
        "type": type_,
        "since": moments.since(since) if since else "",
        "order": sort,
        "reverse": reverse,
        "limit": limit,
        "offset": (limit or 0) * (page - 1),
    }
    entries = asking.ask(named, "list", values, names_only=not as_json)["entries"]
    if as_json:
        output.json(entries)
        return
    if not sys.stdout.isatty():
        output.rows((entry["id"], output.TAB, entry["title"]) for entry in entries)
        return
    lines = [(output.styled(entry["id"], dim=True), "  ", entry["title"]) for entry in entries]
    output.rows(lines)
