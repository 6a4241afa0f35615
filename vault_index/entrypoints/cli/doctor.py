"""`lessons doctor`."""

from __future__ import annotations

import click

from vault_index.entrypoints.cli import output
from vault_index.entrypoints.cli.options import json_option


@click.command("doctor", epilog="Example: lessons doctor")
@json_option
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """Report what is wrong here, with the command that fixes it.

    Looks at settings, index, lessons, model, the agent's hooks, PATH, watcher and git hooks, and
    changes nothing. Exits with status 1 if something is wrong.
    """
    from vault_index.entrypoints import doctor

    answer = doctor.report(ctx.obj)
    troubles = answer["troubles"]
    if as_json:
        output.json(answer)
    elif not troubles:
        output.say("everything is fine")
    for trouble in () if as_json else troubles:
        output.say(f"{trouble['about']:<9}", trouble["what"])
        output.say("   ", output.styled(trouble["fix"], bold=True))
    ctx.exit(1 if troubles else 0)
