"""`lessons install`."""

from __future__ import annotations

from pathlib import Path

import click

from vault_index.entrypoints.cli import asking, output, recording

AGENTS_MD = "agents-md"
HOOKED = ("claude", "codex", "gemini", "cursor", "opencode")  # a test holds that they are `agents`'

agent_argument = click.argument("agent", type=click.Choice([*HOOKED, AGENTS_MD]))
scope_option = click.option(
    "--user/--project",
    "for_user",
    default=None,
    help="In your own settings, for every project (default), or in this project's.",
)


@click.command("install", epilog="Example: lessons install codex")
@agent_argument
@scope_option
@click.option(
    "--journal", is_flag=True, help="Record sessions in the journal, too: see `lessons journal`."
)
def command(agent: str, for_user: bool | None, journal: bool) -> None:
    """Write the hooks into AGENT's settings, beside others.

    For opencode that is a plugin. For agents without hooks, agents-md writes a section of this project's
    AGENTS.md that says how to search.

    With --journal (claude, codex), hooks at the end of turns note that a transcript grew, and what was
    asked and done is kept in ~/.lessons/journal on this machine, without secrets. Without it they stay
    as they are.
    """
    if agent == AGENTS_MD:
        _install_section(for_user, journal)
        return
    from vault_index import config
    from vault_index.entrypoints.hook import agents, claude_plugin, program

    chosen = agents.AGENTS[agent]
    if journal:
        agents.refuse_unrecorded(chosen)
    project = Path.cwd() if for_user is False else None
    settings = chosen.place(project)
    if project:
        agents.refuse_committed_links(agent, project, settings)
    plugin = claude_plugin.enabled_by(project) if agent == claude_plugin.AGENT else None
    changed = False
    if plugin and not project:
        output.say(f"{claude_plugin.shown(plugin)} brings the hooks: none were added")
        settings = Path()  # if the user's settings have them from before, they are others, too
    else:
        command = program.hook_command(shared=project is not None)
        changed = chosen.wiring.install(settings, config.home_folder(), command, journal=journal)
        output.say(f"{settings}: {'hooks installed' if changed else 'hooks were there already'}")
    if journal:
        recording.begin(project)
    if changed and chosen.to_do:
        asking.note(f"note: {chosen.to_do}")
    for other, scope in agents.other_scopes(chosen, settings, Path.cwd()):
        asking.note(f"note: {other} has them, too: of two hooks of a prompt the second is silent")
        asking.note(f"      to have them once: lessons uninstall {agent} {scope}")
    if plugin and project:
        asking.note(f"note: {claude_plugin.shown(plugin)} has them, too: the second is silent")
    why = program.why_not_found(program.COMMAND)
    if why and project:  # the user's own settings name it in full
        asking.note(f"note: {why}, so the agents of whoever works here may not find it")
        asking.note(f"      to put it there: {program.path_command()}")
    asking.announce_model()


def section_file(for_user: bool | None) -> Path:
    """Return the AGENTS.md of the current project. Raises SettingsError."""
    from vault_index.entrypoints.hook import agents, agents_md
    from vault_index.errors import SettingsError

    if for_user:
        raise SettingsError(f"{agents_md.FILE} is a file of a project", "run it without --user")
    file = Path.cwd() / agents_md.FILE
    agents.refuse_committed_links(AGENTS_MD, Path.cwd(), file)
    return file


def _install_section(for_user: bool | None, journal: bool) -> None:
    from vault_index.entrypoints.hook import agents_md
    from vault_index.errors import SettingsError

    if journal:
        raise SettingsError(f"{AGENTS_MD} records no sessions", "run it without --journal")
    file = section_file(for_user)
    changed = agents_md.SECTION.put(file, agents_md.TEXT)
    output.say(f"{file}: {'section written' if changed else 'the section was there already'}")
