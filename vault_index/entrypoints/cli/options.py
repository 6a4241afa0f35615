"""Options and arguments that several commands have, each declared once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from inspect import isgeneratorfunction, unwrap
from pathlib import Path
from typing import Any, NamedTuple

import click

from vault_index.entrypoints.cli import completion, output
from vault_index.errors import VaultError
from vault_index.store import times
from vault_index.text.words import nearest

Decorator = Callable[[Any], Any]
Answers = Iterator[Any]  # of a command that is a generator: the one value that --json prints


class AnswerWithStatus(NamedTuple):
    """An answer and the exit status of its command, which ends when all is printed."""

    answer: Any
    status: int


class Choice(click.Choice[str]):
    """One of some words; a mistyped one is told which was meant."""

    def get_invalid_choice_message(self, value: object, ctx: click.Context | None) -> str:
        near = nearest(str(value), self.choices)
        message = super().get_invalid_choice_message(value, ctx)
        return f"{message} Did you mean {near!r}?" if near else message


class InOrder(click.Group):
    """Commands below a command, listed as they are declared: the most used first."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(self.commands)


class WithDefault(InOrder):
    """Commands below a command that is one itself: `lessons review`, `lessons review accept ID`.

    The first command is the one that is meant where no name of another is typed.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the name of the first command before what names none."""
        if not args or args[0] not in (*self.commands, "-h", "--help"):
            args = [next(iter(self.commands)), *args]
        return super().parse_args(ctx, args)

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        words = next(iter(self.commands.values())).collect_usage_pieces(ctx)
        formatter.write_usage(ctx.command_path, " ".join(words))
        formatter.write_usage(ctx.command_path, "COMMAND [ARGS]...", "   or: ")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        next(iter(self.commands.values())).format_options(ctx, formatter)
        _default, *others = self.commands
        with formatter.section("Commands"):
            rows = [(name, self.commands[name].get_short_help_str(1000)) for name in others]
            formatter.write_dl(rows)


def flag(name: str, about: str) -> Decorator:
    """Return an option that is there or not."""
    return click.option(*name.split(), is_flag=True, help=about)


def text(name: str, metavar: str, about: str, **more: Any) -> Decorator:
    """Return an option for a text; without it the command gets ""."""
    return click.option(*name.split(), metavar=metavar, default="", help=about, **more)


def file(name: str, about: str, *, exists: bool = True) -> Decorator:
    """Return an option for a file, which has to be there if it is read."""
    path = click.Path(exists=exists, dir_okay=False, path_type=Path)
    return click.option(*name.split(), type=path, help=about)


yes = flag("-y --yes", "Do not ask.")


def command(
    name: str,
    example: str,
    *,
    of: click.Group | None = None,
    has_json: bool = True,
    paged: bool = False,
) -> Callable[[Callable[..., Any]], click.Command]:
    """Declare a command, of a group or of `lessons`; `asking` knows its vault.

    With `has_json` it has --json: a generator yields its answer, which is all that is printed then;
    any other function gets `as_json`. Long output of a `paged` command goes to the pager.
    """

    def declare(function: Callable[..., Any]) -> click.Command:
        @wraps(function)
        def print_answer(*args: Any, as_json: bool, **values: Any) -> None:
            status = 0
            for answer in function(*args, **values):
                if isinstance(answer, AnswerWithStatus):
                    answer, status = answer
                if as_json:
                    output.json(answer)
                    break
            if status:
                raise click.exceptions.Exit(status)

        run = print_answer if isgeneratorfunction(unwrap(function)) else function
        run = output.paged()(run) if paged else run
        declared = (of or click).command(name, epilog=f"Example: {example}")(run)
        if has_json:
            json = click.Option(["--json", "as_json"], is_flag=True, help="Print JSON.")
            declared.params.append(json)
        return declared

    return declare


def percent(name: str, about: str) -> Decorator:
    """Return an option for a percentage, `35` or `35%`; the command gets a fraction, or None.

    A fraction is still taken, as .35.
    """
    return click.option(name, metavar="PERCENT", callback=_fraction, help=about)


def _fraction(_context: object, _option: object, typed: str | None) -> float | None:
    if typed is None:
        return None
    try:
        number = float(typed.removesuffix("%"))
    except ValueError:
        raise click.BadParameter(f"{typed!r} is no percentage: type 35, or 35%") from None
    return number if abs(number) <= 1 and not typed.endswith("%") else number / 100


def date(name: str, read: Callable[[str], str], about: str) -> Decorator:
    """Return an option for a date; the command gets it as ISO 8601, or ""."""
    return click.option(
        name,
        metavar="DATE",
        callback=lambda _context, _option, typed: read(typed) if typed else "",
        help=about,
    )


since_changed = date("--since", times.since, "Only new or changed since: 2026-03-31, or 30d, 8w.")


lesson_number = click.option(
    "--lesson", metavar="N", type=click.IntRange(0), help="Only lesson N of the document of --in."
)


def lesson_named(name: str, about: str) -> Decorator:
    """Return an option that names a lesson by its id."""
    return text(name, "ID", about, shell_complete=completion.ids)


related_to = lesson_named(
    "--related-to", "Only what a lesson names under Related, or what names it."
)


def lesson(*, required: bool = True) -> Decorator:
    """Return the argument that names a lesson; one that is not required may be picked."""
    metavar = "ID" if required else "[ID]"
    return click.argument(
        "lesson_id", metavar=metavar, required=required, shell_complete=completion.ids
    )


proposal = click.argument(
    "proposal_id", metavar="[ID]", required=False, shell_complete=completion.proposals
)
proposals = click.argument("ids", metavar="[ID]...", nargs=-1, shell_complete=completion.proposals)


def category(about: str, *, default: str | None = "") -> Decorator:
    """Return the option that names a category."""
    return click.option(
        "-c", "--category", default=default, help=about, shell_complete=completion.categories
    )


def categories(about: str) -> Decorator:
    """Return the option that names categories."""
    return click.option(
        "-c",
        "--category",
        "categories",
        multiple=True,
        help=about,
        shell_complete=completion.categories,
    )


def tags(about: str) -> Decorator:
    """Return the option that names tags."""
    return click.option("--tag", "tags", multiple=True, help=about, shell_complete=completion.tags)


def lesson_type(about: str, *, default: str | None = None) -> Decorator:
    """Return the option that names a type of lessons."""
    about += "code_pattern, bug_fix, architecture, project_rule."
    return click.option("--type", default=default, help=about, shell_complete=completion.types)


def write(about: str = "Do it; without, only show what would be done.") -> Decorator:
    """Return the option that changes files: without it a command only shows a plan."""
    return flag("--write", about)


def choice(name: str, words: str, about: str, **more: Any) -> Decorator:
    """Return an option that takes one of some words; a default is shown."""
    shows = "default" in more
    kind = Choice(words.split())
    return click.option(*name.split(), type=kind, help=about, show_default=shows, **more)


def number(name: str, default: int | None, least: int, most: int | None, about: str) -> Decorator:
    """Return an option for a number with its limits."""
    return click.option(
        *name.split(),
        default=default,
        show_default=True,
        type=click.IntRange(least, most),
        help=about,
    )


def port(default: int, about: str) -> Decorator:
    """Return the option for the port of a server."""
    return number("--port", default, 0, 65535, about)


def token_file(about: str) -> Decorator:
    """Return the option for the file with the token of a server's clients."""
    return click.option("--token-file", type=click.Path(path_type=Path), help=about)


def _open_published(ctx: click.Context, _option: click.Parameter, uri: str | None) -> None:
    if uri:
        from vault_index import publish  # a feature

        opened = publish.open_index(uri)
        # which it may run unasked: words would leave in an address that it makes up
        if ctx.info_name == "search" and output.is_for_agent() and not opened.is_named_by_user:
            why = f"an agent searches no index that its user's settings do not name: {uri}"
            raise VaultError(why, "run it without --index, or ask the user to set index.shared")
        ctx.obj = opened


published = click.option(
    "--index",
    metavar="URI",
    callback=_open_published,
    expose_value=False,
    help="Ask a published index; no vault is needed.",
)
