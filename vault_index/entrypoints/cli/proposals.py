"""`lessons proposals`."""

from __future__ import annotations

from typing import Any

import click

from vault_index.entrypoints.cli import asking, completion, output
from vault_index.entrypoints.cli.options import json_option


@click.command("proposals", epilog="Example: lessons proposals 3f9a --json")
@completion.proposal(required=False)
@json_option
@click.pass_obj
def command(named: str | None, proposal_id: str | None, as_json: bool) -> None:
    """List the lessons that agents propose, or print one.

    ID is the id of a proposal or its beginning. See `lessons accept` and `lessons reject`.
    """
    listed = asking.ask(named, "proposals", {"id": proposal_id or ""})["proposals"]
    if as_json:
        output.json(listed[0] if proposal_id else listed)
    elif proposal_id:
        _show(listed[0])
    elif not listed:
        asking.note("no proposals wait")
    else:
        output.rows((output.styled(each["id"], bold=True), f"  {_line(each)}") for each in listed)


def _line(proposal: dict[str, Any]) -> str:
    """Return a proposal in a line: when, where to, its title, how many findings."""
    about = [proposal["created"][:10], f"[{proposal['category'] or 'no category'}]"]
    about.append(proposal["title"])
    if proposal["findings"]:
        about.append(f"({len(proposal['findings'])} to look at)")
    return "  ".join(filter(None, about))


def _show(proposal: dict[str, Any]) -> None:
    output.say(output.styled(proposal["title"], bold=True))
    filed = proposal["category"] or "no category"
    by = f" · by {proposal['by']}" if proposal["by"] else ""
    output.say(f"[{filed}] {proposal['id']}{by}, {proposal['created'][:10]}")
    for name in ("tags", "fires_on"):
        if proposal[name]:
            output.say(f"{name}: {', '.join(proposal[name])}", indent=2)
    for finding in proposal["findings"]:
        output.say(f"  {finding['level']}: {finding['rule']}: {finding['message']}", indent=2)
    for id, title, likeness in proposal["near"]:
        output.say(f"  {likeness:.0%} like {id} ({title})", indent=2)
    output.say()
    output.text(proposal["text"])
