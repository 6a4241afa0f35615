"""`lessons skills candidates`."""

from __future__ import annotations

import math
from typing import Any

import click

from vault_index.entrypoints.cli import asking, output
from vault_index.entrypoints.cli.options import json_option


@click.command("candidates", epilog="Example: lessons skills candidates --json")
@json_option
@click.pass_obj
def command(named: str | None, as_json: bool) -> None:
    """List the tags by how near each is to a skill."""
    listed = asking.ask(named, "skills candidates")["candidates"]
    if as_json:
        output.json(listed)
    elif not listed:
        asking.note("no accepted lesson of type code_pattern has a tag")
    else:
        output.rows((output.styled(each["tag"], bold=True), f"  {_line(each)}") for each in listed)


def _line(candidate: dict[str, Any]) -> str:
    """Return how near a candidate is, in a line."""
    mean = math.floor(10 * candidate["confidence"]) / 10  # 3.96 is not yet 4.0
    counts = [
        f"lessons {candidate['lessons']}/{candidate['least_lessons']}",
        f"confidence {mean:.1f}/{candidate['least_confidence']:.1f}",
        f"uses {candidate['uses']}/{candidate['least_uses']}",
    ]
    if candidate["built"]:
        counts.append("built")
    elif candidate["same_as"]:
        counts.append(f"the lessons of {candidate['same_as']}")
    elif candidate["ready"]:
        counts.append("ready")
    return ", ".join(counts)
