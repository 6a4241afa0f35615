"""`lessons doctor`, `config`."""

from __future__ import annotations

import click

from vault_index.entrypoints.cli import output, ready

_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.command(epilog="Example: lessons doctor")
@_json
@click.pass_context
def doctor(ctx: click.Context, as_json: bool) -> None:
    """Say what is wrong here, each with the command that fixes it.

    Looks at settings, index, lessons, model, the agent's hooks, PATH, watcher and git hooks, and
    changes nothing. Exits with status 1 if something is wrong.
    """
    from dataclasses import asdict

    from vault_index.entrypoints import doctor as doctors

    troubles = doctors.examine(ctx.obj)
    if as_json:
        output.json({"ok": not troubles, "troubles": list(map(asdict, troubles))})
    elif not troubles:
        output.say("everything is fine")
    for one in () if as_json else troubles:
        output.say(f"{one.about:<9}", one.what)
        output.say("   ", output.styled(one.fix, bold=True))
    ctx.exit(1 if troubles else 0)


@click.command(epilog="Example: lessons config --json")
@_json
@click.pass_obj
def config(named: str | None, as_json: bool) -> None:
    """Show the settings in force, and who set each of them.

    Later wins: defaults, lessons/vault.toml, config.toml in your own folder, environment.
    """
    from vault_index import condition

    vault = ready.open_vault(named)
    settings = condition.settings(vault)
    if as_json:
        output.json(settings)
        return
    width = max(len(one["name"]) for one in settings)
    for one in settings:
        origin = output.styled(f"  ({one['origin']})", dim=one["origin"] == "default")
        output.say(f"{one['name']:<{width}}  {condition.shown_value(one['value'])}", origin)
    for key in vault.config.ignored:
        ready.note(f"warning: lessons/vault.toml: a vault may not set {key!r}; it is ignored")
