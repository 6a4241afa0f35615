"""`lessons categories`."""

from __future__ import annotations

import click

from vault_index.entrypoints.cli import asking, output
from vault_index.entrypoints.cli.options import json_option


@click.command("categories", epilog="Example: lessons categories --json")
@json_option
@click.pass_obj
def command(named: str | None, as_json: bool) -> None:
    """Print the tree of categories, with counts of lessons."""
    answer = asking.ask(named, "categories", settled=True)
    if as_json:
        output.json(answer["counts"])
        return
    if not answer["counts"]:
        asking.note("no lessons yet")
    for category, count in answer["counts"].items():
        name = "  " * category.count("/") + category.rpartition("/")[2]
        own = answer["own"].get(category, 0)
        below = f"  ({own} in it, {count - own} below)" if own not in (0, count) else ""
        output.row(f"{count:>6}  {name}", output.styled(below, dim=True))
