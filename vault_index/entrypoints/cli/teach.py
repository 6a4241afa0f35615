"""`lessons teach`."""

from __future__ import annotations

from typing import Any

import click

from vault_index import client
from vault_index.entrypoints.cli import asking, completion, output
from vault_index.entrypoints.cli.last import record_of
from vault_index.entrypoints.cli.options import json_option
from vault_index.errors import VaultError

FIRES, SILENT = "fires_on", "silent_on"


@click.command("teach", epilog='Example: lessons teach "run the tests please" --fires run-tests')
@click.argument("prompt", nargs=-1)
@click.option(
    "--last", type=click.IntRange(1, 100), help="The prompt of that number in `lessons last`."
)
@click.option(
    "--fires", metavar="ID", shell_complete=completion.ids, help="The lesson that should fire."
)
@click.option(
    "--not", "silent", metavar="ID", shell_complete=completion.ids, help="The lesson to keep out."
)
@click.option("--undo", is_flag=True, help="Take back what was taught.")
@json_option
@click.pass_obj
def command(
    named: str | None,
    prompt: tuple[str, ...],
    last: int | None,
    fires: str | None,
    silent: str | None,
    undo: bool,
    as_json: bool,
) -> None:
    """Teach a lesson to fire at PROMPT, or to stay out.

    --last N takes the prompt of that number in `lessons last`. Without --fires and --not, choose among
    the nearest lessons at a terminal. The lesson's file gets the prompt under fires_on or silent_on,
    and acts at the next prompt.
    """
    if bool(prompt) is bool(last):
        raise click.UsageError("name one prompt: PROMPT, or --last N")
    record = record_of(named, last) if last else {}
    text = " ".join(prompt) or record["text"]
    if not text:
        raise VaultError("the text of this prompt was not kept", "type it: lessons teach PROMPT")
    if fires and silent:
        raise VaultError("both --fires and --not", "choose one of them")
    lesson, kind = (silent, SILENT) if silent else (fires, FIRES)
    name = client.name_in_vault(named, lesson) if lesson else asking.pick(named, text)
    values: dict[str, Any] = {"name": name, "kind": kind, "prompt": text, "undo": undo}
    if record:
        values |= {"session": record["session"], "key": record["prompt"]}
    done = asking.ask(named, "teach", values)
    if as_json:
        output.json(done)
        return
    output.say(_said(done, undo))
    if not done["acts"]:
        asking.note(f"it does not act yet: {done['silent'] or 'the lesson still comes'}")


def _said(done: dict[str, Any], undo: bool) -> str:
    if undo:
        return f"{'taken out of' if done['changed'] else 'it was not in'} {done['id']}"
    what = "fires at" if done["kind"] == FIRES else "stays out at"
    again = "" if done["changed"] else " (as taught before)"
    return f"{done['id']} {what} this prompt and near ones{again}"
