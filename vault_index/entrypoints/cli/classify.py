"""`lessons classify`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import click

from vault_index.entrypoints.cli import asking, output
from vault_index.entrypoints.cli.options import count, json_option
from vault_index.lesson.category import UNCATEGORIZED


@click.command("classify", epilog="Example: lessons classify --write")
@click.option("--write", is_flag=True, help="Write the proposals into the files' frontmatter.")
@json_option
@click.pass_obj
def command(named: str | None, write: bool, as_json: bool) -> None:
    """Propose categories for lessons without any, and show why.

    The index finds them under the proposed ones; their files change with --write only. Phrases that
    name a category are in lessons/vault.toml: under [keywords], "GitHub Actions" = "devops/ci-cd".
    """
    proposals = asking.ask(named, "classify", settled=True)["proposals"]
    accepted = asking.ask(named, "accept", {"proposals": proposals, "write": write})
    files, written = accepted["files"], accepted["written"]
    for reason in accepted["failed"]:
        asking.note(f"warning: {reason}: left as it is")
    if as_json:
        shown = [
            {key: proposal[key] for key in proposal if key != "file_hash"} for proposal in proposals
        ]
        output.json({"proposals": shown, "written": written})
        return
    _print_proposals(proposals)
    if not proposals:
        asking.note("every lesson has a category")
        return
    for path, lessons in Counter(
        proposal["path"] for proposal in proposals if proposal["path"] in files
    ).items():
        if lessons > 1:
            asking.note(f"note: {path} has one frontmatter for all: {', '.join(files[path])}")
    if write:
        output.say(f"{count(len(written), 'file')} written")
        return
    sure = [
        proposal
        for proposal in proposals
        if proposal["path"] in files and _categories(proposal) != UNCATEGORIZED
    ]
    several = f" for {count(len(files), 'file')}" if len(sure) != len(files) else ""
    output.say(f"{count(len(sure), 'proposal')}{several}; nothing is written without --write")


def _print_proposals(proposals: Sequence[Mapping[str, Any]]) -> None:
    for proposal in proposals:
        categories = _categories(proposal)
        styled = output.styled(categories, bold=categories != UNCATEGORIZED)
        output.row(styled, f" ({proposal['sure']:.0%}): {proposal['title']}")
        output.row(output.styled(f"   {proposal['path']}: {'; '.join(proposal['why'])}", dim=True))


def _categories(proposal: Mapping[str, Any]) -> str:
    return ", ".join(proposal["categories"])
