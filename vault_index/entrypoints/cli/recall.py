"""`lessons recall`."""

from __future__ import annotations

from typing import Any

import click

from vault_index.entrypoints.cli import asking, output
from vault_index.entrypoints.cli.options import json_option, project_of
from vault_index.search.hit import Hit, percent_of


@click.command("recall", epilog='Example: lessons recall "our build dies with heap out of memory"')
@click.argument("query", nargs=-1, required=True)
@json_option
@click.pass_obj
def command(named: str | None, query: tuple[str, ...], as_json: bool) -> None:
    """Print what an agent would get for the prompt QUERY."""
    values = {"query": " ".join(query), "project": project_of(named)}
    answer = asking.ask(named, "recall", values, settled=True)
    if as_json:
        output.json(
            {key: answer[key] for key in ("text", "hits", "skills", "floor", "silent", "near")}
        )
    elif answer["text"]:
        output.text(answer["text"])
    else:
        asking.note(f"silent: {answer['silent']}{_nearest(answer)}")


def _nearest(answer: dict[str, Any]) -> str:
    """Return the nearest lesson of a silence, with its score and the floor."""
    if not answer["near"] or answer["floor"] is None:
        return ""
    near = Hit.from_json(answer["near"])
    return f" (nearest: {near.title}, {near.percent}%; the floor is {percent_of(answer['floor'])}%)"
