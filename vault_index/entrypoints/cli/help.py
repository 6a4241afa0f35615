"""Help beyond `--help`: the commands that few need, and the next step of somebody who begins."""

from __future__ import annotations

from typing import Any

import click

from vault_index.entrypoints.cli import context, options, output
from vault_index.errors import NoVaultError


@click.command("help", epilog="Example: lessons help --all")
@click.argument("words", metavar="[COMMAND]...", nargs=-1)
@options.flag("--all show_all", "List every command.")
@click.pass_context
def command(ctx: click.Context, words: tuple[str, ...], show_all: bool) -> None:
    """Show the help of a command, or list every command."""
    about = ctx.find_root()
    if show_all and not words:
        formatter = about.make_formatter()
        main: Any = about.command  # whose class is in the module that loads this one
        main.format_sections(about, formatter, show_all=True)
        output.text(formatter.getvalue().strip())
        return
    for word in words:
        group = about.command
        if not isinstance(group, click.Group):
            ctx.fail(f"there is no command {word!r} below {about.command_path!r}")
        name, command, _ = group.resolve_command(about, [word])  # fails for an unknown one
        about = click.Context(command or group, about, name)
    output.text(about.get_help())


def show_next_step() -> None:
    """Say in a few lines what is here and what to type next."""
    from vault_index import api
    from vault_index.entrypoints import doctor
    from vault_index.text.words import count

    try:
        vault = context.vault()
    except NoVaultError:
        output.say("there is no vault here; type `lessons init` in your team's repository")
        output.say("a first look: lessons --help")
        return
    lessons = sum(1 for _ in vault.files()[0])
    output.say(f"{vault.root}: {count(lessons, 'lesson file')}")
    first = ("lessons add --title ... --text ...", "write the first lesson")
    steps = [first] if not lessons else []
    if not doctor.hooks(vault).installed:
        steps.append(("lessons install claude", "have your agent get lessons"))
    waiting = len(context.ask(api.proposal.select()))
    if waiting:
        steps.append(("lessons review", f"decide about {count(waiting, 'proposal')}"))
    steps += [("lessons search WORDS", "find a lesson"), ("lessons status", "look at all of it")]
    for typed, why in [*steps, ("lessons --help", "see what else there is")]:
        output.row(output.styled(f"  {typed:<36}", bold=True), why)
