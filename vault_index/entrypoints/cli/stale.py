"""`lessons stale`."""

from __future__ import annotations

import click

from vault_index.entrypoints.cli import asking, output
from vault_index.entrypoints.cli.options import count, json_option


@click.command("stale", epilog="Example: lessons stale")
@json_option
@click.pass_obj
def command(named: str | None, as_json: bool) -> None:
    """List lessons that only cost, or whose subject is gone.

    A lesson is listed when agents contradict it or never take its advice, or when a file, a name of the
    code or a version that it cites is gone or has changed much since it was last confirmed. Nothing is
    deleted: each line says why, and what to do.
    """
    answer = asking.ask(named, "stale")
    if as_json:
        output.json(answer)
        return
    if not answer["reasons"]:
        output.say("no lesson needs another look")
    for reason in answer["reasons"]:
        output.say(f"{reason['path']}: {reason['why']}")
        output.say(f"  {reason['do']}")
    if answer["reasons"]:
        asking.note(f"{count(answer['lessons'], 'lesson')}; if it still holds: lessons confirm ID")
    if answer["waiting"]:
        asking.note(f"{count(answer['waiting'], 'session')} not judged yet: run it again")
