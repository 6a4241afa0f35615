"""`lessons uninstall`."""

from __future__ import annotations

from pathlib import Path

import click

from vault_index.entrypoints.cli import asking, output, recording
from vault_index.entrypoints.cli.install import agent_argument, scope_option


@click.command("uninstall", epilog="Example: lessons uninstall claude")
@agent_argument
@scope_option
def command(agent: str, for_user: bool) -> None:  # noqa: ARG001  # one agent so far
    """Take exactly our hooks out of AGENT's settings.json.

    Sessions are then no longer recorded; the journal stays.
    """
    from vault_index import config
    from vault_index.entrypoints.hook import claude_plugin, claude_settings

    if not for_user:
        claude_settings.refuse_committed_links(Path.cwd())
    settings = claude_settings.claude_settings(None if for_user else Path.cwd())
    changed = claude_settings.uninstall(settings, config.home_folder())
    output.say(f"{settings}: {'hooks removed' if changed else 'there were no hooks'}")
    recording.end(None if for_user else Path.cwd())
    if plugin := claude_plugin.enabled_by(Path.cwd()):
        asking.note(f"note: {claude_plugin.shown(plugin)} still runs them")
        asking.note(f"      to remove it: claude plugin uninstall {claude_plugin.NAME}")
