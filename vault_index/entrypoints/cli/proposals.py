"""`lessons proposals`."""

from __future__ import annotations

from typing import Any

import click

from vault_index.entrypoints.cli import asking, completion, output, proposal_card
from vault_index.entrypoints.cli.options import json_option


@click.command("proposals", epilog="Example: lessons proposals 3f9a --json")
@completion.proposal(required=False)
@json_option
@click.pass_obj
def command(named: str | None, proposal_id: str | None, as_json: bool) -> None:
    """List proposed lessons, or print one.

    ID is the id of a proposal or its beginning. `lessons review` shows more and decides.
    """
    listed = asking.ask(named, "proposals", {"id": proposal_id or ""})["proposals"]
    if as_json:
        output.json(listed[0] if proposal_id else listed)
    elif proposal_id:
        _show(listed[0])
    elif not listed:
        asking.note("no proposals wait")
    else:
        output.rows(
            (output.styled(each["id"], bold=True), f"  {proposal_card.line(each)}")
            for each in listed
        )


def _show(proposal: dict[str, Any]) -> None:
    output.say(output.styled(proposal["title"], bold=True))
    filed = proposal["category"] or "no category"
    by = f" · by {proposal['by']}" if proposal["by"] else ""
    draft = " · a draft by rule" if proposal["is_draft"] else ""
    draft += f" · session {proposal['session']}" if proposal["session"] else ""
    until = f", expires {proposal['expires']}" if proposal["expires"] else ""
    output.say(f"[{filed}] {proposal['id']}{by}{draft}, {proposal['created'][:10]}{until}")
    for name in ("tags", "fires_on", "silent_on", "quotes"):
        if proposal[name]:
            output.say(f"{name}: {', '.join(proposal[name])}", indent=2)
    for finding in proposal["findings"]:
        output.say(f"  {finding['level']}: {finding['rule']}: {finding['message']}", indent=2)
    for id, title, likeness in proposal["near"]:
        output.say(f"  {likeness:.0%} like {id} ({title})", indent=2)
    output.say()
    output.text(proposal["text"])
