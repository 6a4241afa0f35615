"""`lessons install`, `uninstall`, `hook`."""

from __future__ import annotations

from pathlib import Path

import click

from vault_index.entrypoints.cli import output, ready

_agent = click.argument("agent", type=click.Choice(["claude"]))
_where = click.option(
    "--user/--project",
    "for_user",
    default=True,
    help="In your own settings, for every project (default), or in this project's.",
)


@click.command(epilog="Example: lessons install claude")
@_agent
@_where
def install(agent: str, for_user: bool) -> None:
    """Wire the hooks into AGENT's settings.json, beside what is there."""
    from vault_index import config
    from vault_index.entrypoints import agents

    if not for_user:
        agents.refuse_committed_links(Path.cwd())
    settings = agents.claude_settings(None if for_user else Path.cwd())
    command = agents.hook_command(shared=not for_user)
    changed = agents.install(settings, config.home_folder(), command)
    output.say(f"{settings}: {'hooks installed' if changed else 'hooks were there already'}")
    for other, scope in agents.other_scopes(settings, Path.cwd()):
        ready.note(f"note: {other} has them, too: of two hooks of a prompt the second is silent")
        ready.note(f"      to have them once: lessons uninstall {agent} {scope}")
    why = agents.why_not_found(agents.COMMAND)
    if why and not for_user:  # the user's own settings name it in full
        ready.note(f"note: {why}, so the agents of whoever works here may not find it")
        ready.note(f"      to put it there: {agents.path_command()}")
    ready.announce_model()


@click.command(epilog="Example: lessons uninstall claude")
@_agent
@_where
def uninstall(agent: str, for_user: bool) -> None:  # noqa: ARG001  # one agent so far
    """Take exactly the hooks out of AGENT's settings.json."""
    from vault_index import config
    from vault_index.entrypoints import agents

    if not for_user:
        agents.refuse_committed_links(Path.cwd())
    settings = agents.claude_settings(None if for_user else Path.cwd())
    changed = agents.uninstall(settings, config.home_folder())
    output.say(f"{settings}: {'hooks removed' if changed else 'there were no hooks'}")


@click.command(epilog="Example: lessons hook < event.json")
def hook() -> None:
    """Answer one hook event of an agent: JSON on stdin, JSON or nothing on stdout."""
    from vault_index.entrypoints import hook_client

    hook_client.main()
