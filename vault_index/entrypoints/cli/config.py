"""`lessons config`."""

from __future__ import annotations

import click

from vault_index.entrypoints.cli import asking, output
from vault_index.entrypoints.cli.options import json_option


@click.command("config", epilog="Example: lessons config --json")
@json_option
@click.pass_obj
def command(named: str | None, as_json: bool) -> None:
    """Show the settings in force, and who set each of them.

    Later wins: defaults, lessons/vault.toml, config.toml in your own folder, environment.
    """
    from vault_index.entrypoints.cli import status

    settings = asking.ask(named, "config")["settings"]
    if as_json:
        output.json(settings)
        return
    width = max(len(setting["name"]) for setting in settings)
    for setting in settings:
        origin = output.styled(f"  ({setting['origin']})", dim=setting["origin"] == "default")
        output.say(f"{setting['name']:<{width}}  {status.shown_value(setting['value'])}", origin)
