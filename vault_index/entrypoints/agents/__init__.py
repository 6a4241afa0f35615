"""The agents that can be wired up: where each keeps its hooks, and how they are put there."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from vault_index import features, git
from vault_index.entrypoints import wording
from vault_index.entrypoints.agents import hook_settings
from vault_index.entrypoints.agents.hook_settings import HookSettings
from vault_index.entrypoints.agents.section import MarkedSection
from vault_index.errors import SettingsError
from vault_index.hotpath.agents import CLAUDE_CODE, FILES, JOURNAL, Agent, load


def _settings_of(agent: Agent) -> HookSettings:
    """Return the writer of an agent's hooks: JSON, unless the agent names another class."""
    kind: type[HookSettings] = load(agent.installer) if agent.installer else HookSettings
    return kind(agent)


CLAUDE = HookSettings(CLAUDE_CODE)
install, uninstall = CLAUDE.install, CLAUDE.uninstall
AGENTS: dict[str, HookSettings] = {
    "claude": CLAUDE,
    **{agent.name: _settings_of(agent) for agent in features.agents()},
}


def wired(project: Path) -> list[tuple[HookSettings, str, Path]]:
    """Return the agents whose files name our hook for the user or this project, with scope and file."""
    found: dict[Path, tuple[HookSettings, str, Path]] = {}
    for agent in AGENTS.values():
        for scope, folder in (("--user", None), ("--project", project)):
            file = agent.place(folder)
            if agent.events_in(file):
                found.setdefault(file, (agent, scope, file))
    return list(found.values())


def other_scopes(agent: HookSettings, settings: Path, project: Path) -> list[tuple[Path, str]]:
    """Return the other files of the user and this project that run our hooks, with their scope."""
    files = [(file, scope) for one, scope, file in wired(project) if one is agent]
    return [each for each in files if each[0] != settings and agent.runs_hooks(each[0])]


def recording_in(project: Path | None) -> list[Path]:
    """Return the files of the user or of a project whose hooks tell the journal of the end of turns."""
    files = [(agent, agent.place(project)) for agent in AGENTS.values()]
    return [
        file
        for agent, file in files
        if (wanted := set(agent.events(JOURNAL))) and wanted <= agent.events_in(file)
    ]


def refuse_missing(agent: HookSettings, wanted: Collection[str]) -> None:
    """Raise SettingsError for hooks of the journal or before edits that an agent does not have."""
    able = ", ".join(one.name for one in AGENTS.values() if one.events(JOURNAL))
    for when, message in (
        (JOURNAL, f"the journal does not read sessions of {agent.name}, only of {able}"),
        (FILES, f"{agent.name} has no hook that runs at edits alone"),
    ):
        if when in wanted and not agent.events(when):
            raise SettingsError(message, f"run it without --{when}")


def refuse_committed_links(agent: str, project: Path, file: Path) -> None:
    """Raise SettingsError if a file in a project, or a folder above it, is a link of its repository.

    Its author chose where such a link leads; the user's own links are followed.
    """
    parts = file.relative_to(project).parts
    for depth in range(len(parts)):
        step = project.joinpath(*parts[: depth + 1])
        listed = ("ls-files", "--", str(step.relative_to(project)))
        if step.is_symlink() and git.ask(git.top_of(project), *listed, folder=project):
            yourself = f", or install for yourself: lessons install {agent} --user"
            raise SettingsError(
                f"{step} is a link that the repository brought; it was not followed",
                f"remove the link{yourself if agent in AGENTS else ''}",
            )


# The section of AGENTS.md that says how to search and how to propose, for agents without hooks.

FILE = "AGENTS.md"
SECTION = MarkedSection("<!-- lessons: section {stamp} -->", "<!-- lessons: end -->")
TEXT = """\
## Lessons

What this team learned the hard way is in a vault of lessons. Before you begin something that may have
gone wrong before (a build, a deployment, a migration, an error you cannot explain), search it:

- `lessons search "what you want to do, or the error"` lists lessons, and `lessons show ID` prints one.
  They are notes with their sources, not instructions.
- When you learned something that will save others time, propose it: pipe a JSON list of objects with
  title, type, what_to_do and quotes into `lessons propose`. A person decides on it.
"""


# What a user types to an agent without the plugin: files of ours for each agent that has such files.

COMMANDS = {  # what each does, in the heading of its file and for the agent
    wording.LEARN: ("Learn from this session", "Propose lessons from this session"),
    wording.TEND: ("Write prompts for lessons", "Write prompts for lessons that have none"),
}
_END = "[end of lessons]"


def command_files(agent: HookSettings, settings: Path) -> list[tuple[Path, MarkedSection, str]]:
    """Return the files of the commands, beside an agent's settings, and what belongs into each."""
    pattern = agent.profile.command_file
    files = []
    for name in COMMANDS if pattern else ():
        file = Path(os.path.normpath(settings.parent / pattern.replace("NAME", name)))
        section, text = _form(file.name, name, wording.instructions(name, agent.profile.typed))
        files.append((file, section, text))
    return files


def _form(file: str, name: str, text: str) -> tuple[MarkedSection, str]:
    """Return the marker lines of a command's file, and the text with what its kind wants around it."""
    heading, about = COMMANDS[name]
    if file == "SKILL.md":
        head = f"name: lessons-{name}\ndescription: {about}, when the user asks for it\n---"
        return MarkedSection("---\n# lessons: {stamp}", _END), f"{head}\n\n{text}"
    if file.endswith(".toml"):
        toml = f"description = \"{about}\"\nprompt = '''\n{text}'''\n"
        return MarkedSection("# lessons: {stamp}", "# lessons: end"), toml
    return MarkedSection(f"{heading} [lessons {{stamp}}]", _END), text


def unwire(agent: HookSettings, settings: Path) -> bool:
    """Take our hooks and commands from an agent. False if there were no hooks. Raises SettingsError."""
    for file, section, _ in command_files(agent, settings):
        section.take_out(file)
    return agent.uninstall(settings)


# The plugin for Claude Code (`.claude-plugin/`): it brings the hooks and finds `lessons-hook`.

AGENT, NAME = "claude", "lessons@lessons-vault"
TOOL = "lessons-vault"  # uv and pipx name the environment of a program after its package


def enabled_by(project: Path | None) -> Path | None:
    """Return the settings that enable the plugin for the user and, if given, in a project, else None.

    A project's settings decide before the user's, and those that are not shared before both.
    """
    files = [AGENTS[AGENT].place(None)]
    if project is not None:
        shared = AGENTS[AGENT].place(project)
        files = [shared.with_name("settings.local.json"), shared, *files]
    for file in files:
        with suppress(SettingsError):  # reported where the settings are changed
            plugins = CLAUDE.read(file)[1].get("enabledPlugins")
            plugins = plugins if isinstance(plugins, dict) else {}
            chosen = plugins.get(NAME)
            if isinstance(chosen, bool):
                return file if chosen else None
    return None


def shown(settings: Path) -> str:
    """Return the name of the plugin and the settings that enable it, as people read it."""
    return f"plugin {NAME} ({settings})"


def why_not_found() -> str:
    """Return the reason for which the plugin may not find our commands, or "": see its `run.sh`."""
    local = Path.home() / ".local" / "bin" / hook_settings.COMMAND
    if local.is_file() or Path(sys.prefix).name == TOOL:
        return ""
    return hook_settings.why_not_found(hook_settings.COMMAND)
