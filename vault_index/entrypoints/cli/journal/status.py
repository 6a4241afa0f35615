"""`lessons journal status`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from vault_index.entrypoints.cli import asking, output
from vault_index.entrypoints.cli.journal import lines
from vault_index.entrypoints.cli.options import count

SHOWN = 5  # projects and problems


def lines_of(state: dict[str, Any]) -> Iterator[str]:
    """Yield the state of the journal for people, a line each."""
    recorded = ["every project" if folder == "*" else folder for folder in state["recorded"]]
    hooks = ", ".join(state.get("hooks", []))
    yield f"recorded   {', '.join(recorded) or 'nothing: run `lessons install claude --journal`'}"
    if recorded:
        yield f"hooks      {hooks or 'not installed: only a watcher sees what grew'}"
    if not state["sessions"]:
        yield f"journal    {state['folder']}: empty; run `lessons journal import`"
    else:
        kinds = state["records"]
        parts = [count(kinds[kind], kind) for kind in ("prompt", "observation")]
        sessions = count(state["sessions"], "session")
        yield f"journal    {state['folder']}: {sessions}, {', '.join(parts)}, {state['mb']:.1f} MB"
        yield f"last       {lines.local(state['last'])}"
        most = sorted(state["projects"].items(), key=lambda item: -item[1])
        shown = ", ".join(f"{name} {number}" for name, number in most[:SHOWN])
        more = f" and {len(most) - SHOWN} more" if len(most) > SHOWN else ""
        yield f"projects   {shown}{more}"
    if state["unread"]:
        yield f"unread     {count(state['unread'], 'line')} of transcripts of a kind nobody described"
    index = state["index"]
    if "error" in index:
        yield f"index      {index['error']}"
    elif index:
        behind = state["sessions"] - index["sessions"]
        to_come = f", {behind} to come" if behind > 0 else ""
        yield f"index      {count(index['sessions'], 'session')}, {index['embedder']}{to_come}"
    if state["waiting"]:
        yield f"waiting    {count(state['waiting'], 'transcript')} to be taken in"
    for problem in state["problems"][:SHOWN]:
        yield f"problem    {problem}"
    if len(state["problems"]) > SHOWN:
        yield f"problem    and {len(state['problems']) - SHOWN} more"
    for complaint in state["complaints"][-SHOWN:]:
        yield f"log        {complaint}"


@click.command("status", epilog="Example: lessons journal status --json")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(named: str | None, as_json: bool) -> None:
    """Show what is recorded, and what went wrong."""
    from vault_index.entrypoints import machine

    state = asking.ask(named, "journal status") | machine.journal_hooks()
    if as_json:
        output.json(state)
        return
    for line in lines_of(state):
        output.say(line, indent=11)
