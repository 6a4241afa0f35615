"""Everything that the command line prints goes through here.

What comes from files, git, servers and arguments may hold characters that a terminal obeys: these are
shown as `\\x1b`, never sent. Only `styled` makes escapes. A test refuses other ways to print.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import click

from vault_index.characters import as_json, visible, visible_line
from vault_index.entrypoints.cli import terminal


class Styled(str):
    """A text that is safe to print as it is: made safe, then given a style of ours."""

    __slots__ = ()


def is_dumb() -> bool:
    """Whether the terminal says that it obeys no escapes."""
    return os.environ.get("TERM") == "dumb"


def color() -> bool | None:
    """Return False where the user wants no colour or the terminal has none; None: look at the stream."""
    return False if os.environ.get("NO_COLOR") or is_dumb() else None


TAB = Styled("\t")  # between columns of what another program reads


def styled(text: object, **style: Any) -> Styled:
    """Return a text in a style of the terminal, such as `bold=True`; what it says is made safe."""
    return Styled(click.style(visible_line(str(text)), **style))


def say(*parts: object, err: bool = False, indent: int = 0) -> None:
    """Print one line, on stderr with `err`. The parts stand side by side.

    At a terminal it is broken between words, and what follows is indented.
    """
    click.echo(terminal.wrap(_line(parts), terminal.width(err=err), indent), err=err)


def row(*parts: object) -> None:
    """Print one line of a list, cut where the terminal ends."""
    click.echo(terminal.clip(_line(parts), terminal.width()))


def rows(lines: Iterable[tuple[object, ...]]) -> None:
    """Print the lines of a list, each of some parts, at once: one by one they take ten times as long."""
    width = terminal.width()
    shown = [terminal.clip(_line(parts), width) for parts in lines]
    if shown:
        click.echo("\n".join(shown))


def text(body: object, *, err: bool = False) -> None:
    """Print a text of several lines."""
    click.echo(visible(str(body)), err=err)


def json(value: Any) -> None:
    """Print a value as JSON."""
    click.echo(as_json(value))


def pager(lines: Sequence[tuple[object, ...]]) -> None:
    """Show lines, each of some parts, one page at a time."""
    width = terminal.width()
    click.echo_via_pager("\n".join(terminal.clip(_line(parts), width) for parts in lines))


def confirm(question: str) -> bool:
    """Ask on stderr for a yes; False for anything else."""
    return click.confirm(visible_line(question), err=True)


def usage(error: click.ClickException) -> None:
    """Print what click has to say about arguments, which it repeats."""
    said = io.StringIO()
    error.show(said)
    for line in said.getvalue().rstrip("\n").split("\n"):
        say(line, err=True)


def progress(label: str) -> Any:
    """Return a bar on stderr for a fraction of one, with its label as wide as the terminal at most."""
    room = (terminal.width(err=True) or 80) - terminal.columns(label) - 25  # for per cent and time
    return click.progressbar(
        length=1, label=visible_line(label), file=sys.stderr, width=max(1, min(36, room))
    )


def _line(parts: tuple[object, ...]) -> str:
    return "".join(part if isinstance(part, Styled) else visible_line(str(part)) for part in parts)
