"""`lessons skills`: the commands for built skills."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from vault_index import api
from vault_index.entrypoints.cli import context, options, output
from vault_index.text.words import count

if TYPE_CHECKING:
    from vault_index.learn.skills.build import Built

in_project = options.flag("--project", "In this project's .claude/skills.")


@click.group("skills", cls=options.InOrder, epilog="Example: lessons skills build --dry-run")
def command() -> None:
    """Build skills from what many accepted lessons say.

    A tag becomes a skill when enough lessons of type code_pattern have it, people are sure of them and
    agents were given them: see [skills] in the settings. `lessons check` says which skill is behind.
    """


@options.command("build", "lessons skills build retries", of=command)
@click.argument("tags", nargs=-1, metavar="[TAG]...")
@options.flag("--dry-run", "Show what would be written.")
@click.option("--to", "agent", type=options.Choice(["claude"]), help="Copy all to this agent, too.")
@in_project
def build_command(
    tags: tuple[str, ...],
    dry_run: bool,
    agent: str | None,
    project: bool,
) -> options.Answers:
    """Write the skills that are ready, or only the skills of these tags.

    They come into skills/learned-TAG/ of the vault; commit them as you would your own. A skill that did
    not change stays byte for byte, and changes made by hand are kept. --to claude copies all that were
    built to where Claude Code loads skills, in your own folder or in this project's.
    """
    built = context.ask(api.skill.build_ready(tags=list(tags), dry_run=dry_run))
    deployed: dict[str, str] = {}
    if agent and not dry_run:
        deployed = context.ask(api.skill.deploy(project=_folder(project)))
    yield options.AnswerWithStatus(built, any(skill.state == "failed" for skill in built))
    _show(built, dry_run=dry_run)
    _show_states(deployed)


@options.command("remove", "lessons skills remove --from claude", of=command)
@click.option("--from", "agent", type=options.Choice(["claude"]), required=True, help="The agent.")
@in_project
def remove_command(agent: str, project: bool) -> options.Answers:
    """Remove what `build --to` copied; what you changed stays."""
    del agent
    states = context.ask(api.skill.deploy(project=_folder(project), remove=True))
    yield states
    _show_states(states)
    if not states:
        context.note("no copies of built skills are there")


def _folder(project: bool) -> str:
    return str(Path.cwd()) if project else ""


def _show_states(states: dict[str, str]) -> None:
    for path, state in states.items():
        output.say(output.styled(path, bold=True), f"  {state}")


def _show(built: list[Built], *, dry_run: bool) -> None:
    if not built:
        context.note("no tag is ready for a skill; your agent writes one: `/lessons:skill TOPIC`")
    for skill in built:
        why = f": {skill.why}" if skill.why else ""
        would = "would be " if dry_run and skill.state in ("new", "changed") else ""
        used = f", given {count(skill.uses, 'time')}, last on {skill.last_used[:10]}" * bool(
            skill.uses
        )
        about = f"  {would}{skill.state}, {count(skill.lessons, 'lesson')}{used}{why}"
        output.say(output.styled(skill.path, bold=True), about)
        for id, reason in skill.left_out.items():
            context.note(f"warning: {skill.name}: {id} is left out: {reason}")
