"""`lessons remember`."""

from __future__ import annotations

import sys

import click

from vault_index.entrypoints.cli import asking, completion, output
from vault_index.entrypoints.cli.options import json_option

BY = "command line"


@click.command(
    "remember",
    epilog='Example: lessons remember --title "Heap" --text "Raise the heap." -c devops/ci-cd',
)
@click.option("--title", required=True, help="What was learned, in a line.")
@click.option("--text", default="-", help="What to do and why; `-`, the default, reads stdin.")
@click.option(
    *("-c", "--category"),
    default="",
    help="Where it belongs.",
    shell_complete=completion.categories,
)
@click.option(
    "--tag", "tags", multiple=True, help="A tag; repeatable.", shell_complete=completion.tags
)
@click.option("--fires-on", multiple=True, help="A prompt that must find it; repeatable.")
@json_option
@click.pass_obj
def command(
    named: str | None,
    title: str,
    text: str,
    category: str,
    tags: tuple[str, ...],
    fires_on: tuple[str, ...],
    as_json: bool,
) -> None:
    """Propose a lesson, for a person to accept or reject.

    It waits outside the vault, is checked like a commit, and no agent gets it before that.
    """
    if text == "-":
        if sys.stdin.isatty():
            raise click.UsageError("pass --text, or pipe the text in")
        text = sys.stdin.buffer.read().decode("utf-8", "replace")
    values = {"title": title, "text": text, "category": category, "by": BY}
    proposed = asking.ask(
        named, "remember", {**values, "tags": list(tags), "fires_on": list(fires_on)}
    )
    if as_json:
        output.json(proposed)
        return
    output.say(
        output.styled(proposed["id"], bold=True), f" {proposed['status']}: {proposed['title']}"
    )
    for finding in proposed["findings"]:
        output.say(f"  {finding['level']}: {finding['rule']}: {finding['message']}", indent=2)
    for id, near, likeness in proposed["near"]:
        output.say(f"  {likeness:.0%} like {id} ({near})", indent=2)
