"""The commands for the vaults above: show, update, accept."""

from __future__ import annotations

import click

from vault_index import api
from vault_index.entrypoints.cli import asking, options, output
from vault_index.entrypoints.words import count


@click.group("vaults", cls=options.WithDefault, epilog="Example: lessons vaults --json")
def vaults_command() -> None:
    """List the vaults that a prompt searches.

    They are this one and those above.

    `vaults.above` in your own settings names them, nearest first; a vault may propose some.
    """


@options.command("show", "lessons vaults show --json", of=vaults_command)
def show_vaults(named: str | None) -> options.Answers:
    """List them, with state and size."""
    yield from _vaults(named)


@options.command("update", "lessons vaults update", of=vaults_command)
def update_vaults(named: str | None) -> options.Answers:
    """Fetch the clones of those above, and index them; `lessons sync` does that as well."""
    yield from _vaults(named, update=True)


@options.command("accept", "lessons vaults accept", of=vaults_command)
def accept_vaults(named: str | None) -> options.Answers:
    """Accept the vaults that this one proposes, and fetch them.

    Another proposal is asked about again.
    """
    yield from _vaults(named, accept=True)


def _vaults(named: str | None, **how: bool) -> options.Answers:
    rows = asking.ask(named, api.share.vaults(**how))
    yield rows
    width = max(len(row["name"]) for row in rows)
    for row in rows:
        size = "" if row["lessons"] is None else f"{count(row['lessons'], 'lesson')}, "
        size += "" if row["bytes"] is None else f"{row['bytes'] / 1e6:.1f} MB, "
        output.say(f"{row['name']:<{width}}  {size}{row['state']}  ", row["entry"])
