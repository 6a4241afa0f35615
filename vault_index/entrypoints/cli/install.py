"""`lessons install`."""

from __future__ import annotations

from pathlib import Path

import click

from vault_index.entrypoints.cli import asking, output, recording

agent_argument = click.argument("agent", type=click.Choice(["claude"]))
scope_option = click.option(
    "--user/--project",
    "for_user",
    default=True,
    help="In your own settings, for every project (default), or in this project's.",
)


@click.command("install", epilog="Example: lessons install claude")
@agent_argument
@scope_option
@click.option(
    "--journal", is_flag=True, help="Record sessions in the journal, too: see `lessons journal`."
)
def command(agent: str, for_user: bool, journal: bool) -> None:
    """Write the hooks into AGENT's settings.json, beside others.

    With --journal, hooks at the end of turns note that a transcript grew, and what was asked and done
    is kept in ~/.lessons/journal on this machine, without secrets. Without it they stay as they are.
    """
    from vault_index import config
    from vault_index.entrypoints.hook import claude_plugin, claude_settings

    if not for_user:
        claude_settings.refuse_committed_links(Path.cwd())
    settings = claude_settings.claude_settings(None if for_user else Path.cwd())
    plugin = claude_plugin.enabled_by(None if for_user else Path.cwd())
    if for_user and plugin:
        output.say(f"{claude_plugin.shown(plugin)} brings the hooks: none were added")
        settings = Path()  # if the user's settings have them from before, they are others, too
    else:
        command = claude_settings.hook_command(shared=not for_user)
        changed = claude_settings.install(settings, config.home_folder(), command, journal=journal)
        output.say(f"{settings}: {'hooks installed' if changed else 'hooks were there already'}")
    if journal:
        recording.begin(None if for_user else Path.cwd())
    for other, scope in claude_settings.other_scopes(settings, Path.cwd()):
        asking.note(f"note: {other} has them, too: of two hooks of a prompt the second is silent")
        asking.note(f"      to have them once: lessons uninstall {agent} {scope}")
    if plugin and not for_user:
        asking.note(f"note: {claude_plugin.shown(plugin)} has them, too: the second is silent")
    why = claude_settings.why_not_found(claude_settings.COMMAND)
    if why and not for_user:  # the user's own settings name it in full
        asking.note(f"note: {why}, so the agents of whoever works here may not find it")
        asking.note(f"      to put it there: {claude_settings.path_command()}")
    asking.announce_model()
