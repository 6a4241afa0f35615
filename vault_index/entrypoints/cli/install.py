"""The commands that wire agents: install, uninstall, hook."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from vault_index import features
from vault_index.entrypoints.cli import context, options, output
from vault_index.hotpath.agents import ALWAYS, CLAUDE_CODE, FAILURES, FILES, JOURNAL

if TYPE_CHECKING:
    from vault_index.entrypoints.agents.hook_settings import HookSettings
    from vault_index.journal.journal import Journal

ABOUT = """\
The journal keeps what you asked and what was done and decided in sessions with your agent, so that you
both find it again. It reads the transcripts that are on this disk already, leaves out the secrets that it
recognises, and keeps the rest in {folder}: yours alone, never committed, no model asked. Remove what you
like with `lessons journal forget`."""


def _journal() -> Journal:
    from vault_index import config
    from vault_index.journal.journal import Journal

    return Journal(config.load())


def begin_recording(folder: Path | None) -> None:
    """Record the sessions of a project or, for None, of all, and say so. Raises VaultError."""
    from vault_index.journal import projects

    journal = _journal()
    new = projects.record(journal, str(folder) if folder else projects.ALL)
    whose = f"sessions in {folder}" if folder else "all sessions"
    verb = "recorded from now on" if new else "recorded already"
    output.say(f"{whose} are {verb}, in {journal.config.home}")
    if new:
        context.note("note: to take in earlier sessions: lessons journal import")


def end_recording(folder: Path | None) -> None:
    """Record no more sessions of a project or, for None, of none without hooks of its own; say so."""
    from vault_index.entrypoints import agents
    from vault_index.journal import projects

    journal = _journal()
    before = projects.recorded_folders(journal)
    recorded = [each for each in before if each[0] == "/" and agents.recording_in(Path(each))]
    if not projects.stop_recording(journal, str(folder) if folder else projects.ALL, but=recorded):
        return
    folders = [each for each in projects.recorded_folders(journal) if each[0] != "!"]
    whose = f"sessions in {folder}" if folder else "sessions"
    if projects.ALL in folders:
        others = "sessions of all other projects are"
    else:
        others = f"sessions in {', '.join(folders)} are" if folders else f"{journal.folder} stays"
    output.say(f"{whose} are no longer recorded; {others}")


LEAVES = """\
When a recorded session ends, your own signed-in claude would read it and propose lessons: some 6,000
tokens of it, without the secrets that we recognise, go to Anthropic, and count for your plan. You accept
each or not."""


def offer_model() -> None:
    """Ask on a terminal, once, whether the user's claude proposes lessons from what is recorded."""
    from vault_index import config
    from vault_index.edit import settings
    from vault_index.features import LearnTable

    table = config.load()[LearnTable]
    if table.model or table.auto:
        return
    later = "lessons config set learn.model claude; lessons config set learn.auto true"
    if not context.is_typed():
        context.note(
            f"note: nobody proposes lessons from sessions by itself; to change it: {later}"
        )
        return
    output.say(" ".join(LEAVES.split()), err=True)
    if not output.confirm("let your claude propose lessons from them?"):
        context.note(f"no; later: {later}")
        return
    file = config.home_folder() / "config.toml"
    for name, value in (("learn.model", "claude"), ("learn.auto", "true")):
        settings.write(file, name, value)
        output.say(f"{file}: {name} = {value}")


def offer_recording(folder: Path) -> None:
    """Ask on a terminal, once, whether to record the sessions of a project, and install the hooks."""
    from vault_index.entrypoints import agents
    from vault_index.entrypoints.agents import hook_settings
    from vault_index.journal import projects

    if not context.is_typed():
        context.note("note: sessions are not recorded; to record: lessons install claude --journal")
        return
    if projects.recorded(_journal(), str(folder)):
        return
    settings = None if agents.enabled_by(None) else agents.AGENTS["claude"].place(None)
    hooks = f" A yes also writes hooks into {settings}, which answer in all projects."
    question = "record the sessions of this project on this machine?"
    if not _asked_to_record(question, hooks if settings else ""):
        return
    if settings:
        command = hook_settings.hook_command(shared=False)
        agents.install(settings, command, (ALWAYS, JOURNAL))
        output.say(f"{settings}: hooks installed")
    begin_recording(folder)
    offer_model()


def offer_languages() -> None:
    """Offer the model for other languages: ask on a terminal where it is installed, else say how."""
    from vault_index import config
    from vault_index.edit import settings
    from vault_index.embed import languages

    loaded = config.load()
    if loaded.embedder != "minilm":
        return
    question = "some lessons are not in English: use the model for 16 languages?"
    if not languages.is_installed():
        context.note(f"note: some lessons are not in English: {languages.SWITCH}")
    elif not context.is_typed():
        context.note(f"note: some lessons are not in English: {languages.SET}")
    elif output.confirm(question, default=True):
        settings.write(loaded.home / "config.toml", "embedder", "minilm+use")


def _asked_to_record(question: str, more: str = "", agent: str = "claude") -> bool:
    about = f"{ABOUT.format(folder=_journal().config.home)}{more}"
    output.say(" ".join(about.split()), err=True)
    is_wanted = output.confirm(question, default=True)
    if not is_wanted:
        context.note(f"no; later: lessons install {agent} --journal")
    return is_wanted


AGENTS_MD = "agents-md"
HOOKED = (CLAUDE_CODE, *features.agents())


def _names(when: str) -> str:
    """Return the names of the agents with hooks for what a user asks for."""
    return ", ".join(agent.name for agent in HOOKED if when in agent.hooks)


def _others(when: str) -> str:
    return ", ".join(agent.name for agent in HOOKED if when not in agent.hooks)


agent_choice = options.Choice([*(agent.name for agent in HOOKED), AGENTS_MD])

scope_option = click.option(
    "--user/--project",
    "for_user",
    default=None,
    help="In your own settings, for every project (default), or in this project's.",
)


@click.command("install", epilog="Example: lessons install codex")
@click.argument("agent", type=agent_choice)
@scope_option
@options.flag("--journal", f"Record sessions in the journal, too: {_names(JOURNAL)}.")
@options.flag("--failures", f"Look for failures after every command: all but {_others(FAILURES)}.")
@options.flag("--files", f"Look for lessons before edits of a file, too: {_names(FILES)}.")
def install_command(
    agent: str, for_user: bool | None, journal: bool, failures: bool, files: bool
) -> None:
    """Write the hooks into AGENT's settings, beside others.

    For opencode that is a plugin. For agents without hooks, agents-md writes a section of this project's
    AGENTS.md that says how to search.

    With --journal, hooks at the end of turns note that a transcript grew, and what was
    asked and done is kept in ~/.lessons on this machine, without the secrets that we recognise. At a
    terminal it asks whether to; elsewhere sessions are recorded with --journal alone.

    With --failures a hook runs after every command and answers one that failed; Codex shows each run.
    With --files one runs before every edit and answers the first of a file that a lesson applies to.
    """
    from vault_index.entrypoints import agents
    from vault_index.entrypoints.agents import hook_settings

    if agent == AGENTS_MD:
        file = section_file(for_user, journal)
        changed = agents.SECTION.put(file, agents.TEXT)
        output.say(f"{file}: {'section written' if changed else 'the section was there already'}")
        return
    chosen = agents.AGENTS[agent]
    if not journal and context.is_typed() and _is_unrecorded(chosen):
        journal = _asked_to_record("record sessions on this machine?", agent=agent)
    chosen_options = {"journal": journal, "failures": failures, "files": files}
    wanted = [ALWAYS, *(when for when, is_asked in chosen_options.items() if is_asked)]
    agents.refuse_missing(chosen, wanted)
    project, settings = _settings_for(chosen, for_user)
    plugin = agents.enabled_by(project) if agent == agents.AGENT else None
    changed = False
    base = plugin is None or project is not None  # else the plugin brings the hooks
    if plugin and not base and not files:
        output.say(f"{agents.shown(plugin)} brings the hooks: none were added")
        settings = Path()  # if the user's settings have them from before, they are others, too
    else:
        command = hook_settings.hook_command(shared=project is not None)
        wanted = wanted if base else [FILES]
        changed = chosen.install(settings, command, wanted)
        output.say(f"{settings}: {'hooks installed' if changed else 'hooks were there already'}")
        _put_command(chosen, project, plugin)
    if journal:
        begin_recording(project)
        offer_model()
    _note_others(chosen, settings, project)
    if changed:
        _note_once(chosen, settings)
    context.announce_model()


def _put_command(agent: HookSettings, project: Path | None, plugin: Path | None) -> None:
    from vault_index.entrypoints import agents

    if plugin and project:
        context.note(f"note: {agents.shown(plugin)} has them, too: the second is silent")
    elif plugin is None:
        for file, section, text in agents.command_files(agent, agent.place(project)):
            section.put(file, text)
            context.note(f"{file}: a command for your agent")


def _is_unrecorded(agent: HookSettings) -> bool:
    from vault_index.journal import projects

    if not agent.events(JOURNAL):
        return False
    return not projects.recorded(_journal(), str(Path.cwd()))


def _settings_for(agent: HookSettings, for_user: bool | None) -> tuple[Path | None, Path]:
    """Return this project, None where it is all of them, and the settings. Raises SettingsError."""
    from vault_index.entrypoints import agents

    project = Path.cwd() if for_user is False else None
    settings = agent.place(project)
    if project:
        agents.refuse_committed_links(agent.name, project, settings)
    return project, settings


def _note_once(agent: HookSettings, settings: Path) -> None:
    """Say what to know of an agent that has the hooks now; offer that it asks the vault by itself."""

    if to_do := agent.profile.to_do:
        context.note(f"note: {to_do}")
    rules = ", ".join(agent.missing_permissions(settings))
    if rules:
        what = "search and read lessons, and propose new ones, without asking you"
        if not context.is_typed():
            context.note(f"note: to let it {what}, allow in {settings}: {rules}")
        elif output.confirm(f"let it {what} ({rules})?"):
            agent.allow(settings)
    if means := agent.profile.memory(str(agent.place(None))):
        context.note(f"note: {agent.name}'s own memory is on: {means}")


def _note_others(agent: HookSettings, settings: Path, project: Path | None) -> None:
    """Say what is not recorded, who else has our hooks, and where their program may not be found."""
    from vault_index.entrypoints import agents
    from vault_index.entrypoints.agents import hook_settings

    if _is_unrecorded(agent) and not context.is_typed():
        how = f"lessons install {agent.name} --journal"
        context.note(f"note: sessions are not recorded; to record: {how}")
    for other, scope in agents.other_scopes(agent, settings, Path.cwd()):
        context.note(f"note: {other} has them, too: of two hooks of a prompt the second is silent")
        context.note(f"      to have them once: lessons uninstall {agent.name} {scope}")
    why = hook_settings.why_not_found(hook_settings.COMMAND)
    if why and project:  # the user's own settings name it in full
        context.note(f"note: {why}, so the agents of whoever works here may not find it")
        context.note(f"      to put it there: {hook_settings.path_command()}")


def section_file(for_user: bool | None, journal: bool = False) -> Path:
    """Return the AGENTS.md of the current project. Raises SettingsError."""
    from vault_index.entrypoints import agents
    from vault_index.errors import SettingsError

    if journal:
        raise SettingsError(f"{AGENTS_MD} records no sessions", "run it without --journal")
    if for_user:
        raise SettingsError(f"{agents.FILE} is a file of a project", "run it without --user")
    file = Path.cwd() / agents.FILE
    agents.refuse_committed_links(AGENTS_MD, Path.cwd(), file)
    return file


@options.command("uninstall", "lessons uninstall claude", has_json=False)
@click.argument("agent", type=agent_choice, required=False)
@scope_option
@options.flag("--all everything", "List and remove all that is here.")
@options.flag("--purge", "With --all: the folder ~/.lessons, too.")
@options.yes
def uninstall_command(
    agent: str | None,
    for_user: bool | None,
    everything: bool,
    purge: bool,
    yes: bool,
) -> None:
    """Take exactly our hooks out of AGENT's settings.

    For agents-md it is the section of AGENTS.md. When no agent is left that records sessions, they are no
    longer recorded; the journal stays.

    --all lists the hooks of all agents, the watcher, and in this clone the git hooks, git's settings and
    the index, and removes them after a question. Lessons stay.
    """
    if everything == bool(agent) or (purge and not everything):
        raise click.UsageError("name an AGENT, or pass --all, with --purge if you like")
    if agent is None:
        from vault_index.entrypoints.cli import removal

        removal.run(purge=purge, yes=yes)
        return
    from vault_index.entrypoints import agents

    if agent == AGENTS_MD:
        file = section_file(for_user)
        removed = agents.SECTION.take_out(file)
        output.say(f"{file}: {'section removed' if removed else 'there was no section'}")
        return
    chosen = agents.AGENTS[agent]
    project, settings = _settings_for(chosen, for_user)
    changed = agents.unwire(chosen, settings)
    output.say(f"{settings}: {'hooks removed' if changed else 'there were no hooks'}")
    plugin = agents.enabled_by(Path.cwd())
    others = agents.recording_in(project) or (plugin and agent != agents.AGENT)
    if chosen.events(JOURNAL) and not others:
        end_recording(project)
    if plugin and agent == agents.AGENT:
        context.note(f"note: {agents.shown(plugin)} still runs them")
        context.note(f"      to remove it: claude plugin uninstall {agents.NAME}")


@click.command("hook", epilog="Example: lessons hook < event.json")
def hook_command() -> None:
    """Answer one hook event of an agent, JSON on stdin.

    Prints JSON or nothing.
    """
    from vault_index.entrypoints.hook import client

    client.main()
