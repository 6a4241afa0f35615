"""`lessons uninstall`."""

from __future__ import annotations

from pathlib import Path

import click

from vault_index.entrypoints.cli import asking, output, recording
from vault_index.entrypoints.cli.install import (
    AGENTS_MD,
    agent_argument,
    scope_option,
    section_file,
)


@click.command("uninstall", epilog="Example: lessons uninstall claude")
@agent_argument
@scope_option
def command(agent: str, for_user: bool | None) -> None:
    """Take exactly our hooks out of AGENT's settings.

    For agents-md it is the section of AGENTS.md. When no agent is left that records sessions, they are no
    longer recorded; the journal stays.
    """
    from vault_index import config
    from vault_index.entrypoints.hook import agents, agents_md, claude_plugin

    if agent == AGENTS_MD:
        file = section_file(for_user)
        gone = agents_md.SECTION.take_out(file)
        output.say(f"{file}: {'section removed' if gone else 'there was no section'}")
        return
    chosen = agents.AGENTS[agent]
    project = Path.cwd() if for_user is False else None
    settings = chosen.place(project)
    if project:
        agents.refuse_committed_links(agent, project, settings)
    changed = chosen.wiring.uninstall(settings, config.home_folder())
    output.say(f"{settings}: {'hooks removed' if changed else 'there were no hooks'}")
    plugin = claude_plugin.enabled_by(Path.cwd())
    others = agents.recording_in(project) or (plugin and agent != claude_plugin.AGENT)
    if chosen.wiring.journal_events and not others:
        recording.end(project)
    if plugin and agent == claude_plugin.AGENT:
        asking.note(f"note: {claude_plugin.shown(plugin)} still runs them")
        asking.note(f"      to remove it: claude plugin uninstall {claude_plugin.NAME}")
