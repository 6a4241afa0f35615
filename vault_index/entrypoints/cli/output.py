"""Everything that the command line prints goes through here.

What comes from files, git, servers and arguments may hold characters that a terminal obeys: these are
shown as `\\x1b`, never sent. Only `styled` makes escapes. A test refuses other ways to print.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from vault_index.entrypoints.cli import terminal
from vault_index.text.characters import as_json, visible, visible_line

# less: end at once where all fits, pass colours on, leave the text on the screen
_PAGER_OPTIONS = {"LESS": "FRX", "LV": "-c"}

_held: list[list[str]] = []  # the lines that a pager may be needed for, while they come


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
    _emit(terminal.wrap(_line(parts), terminal.width(err=err), indent), err)


def row(*parts: object) -> None:
    """Print one line of a list, cut where the terminal ends."""
    _emit(terminal.clip(_line(parts), terminal.width()))


def rows(lines: Iterable[tuple[object, ...]]) -> None:
    """Print the lines of a list, each of some parts, at once: one by one they take ten times as long."""
    width = terminal.width()
    shown = [terminal.clip(_line(parts), width) for parts in lines]
    if shown:
        _emit("\n".join(shown))


def text(body: object, *, err: bool = False) -> None:
    """Print a text of several lines."""
    _emit(visible(str(body)), err)


def piece(part: object) -> None:
    """Print the next piece of a text as it comes, without an end of line."""
    click.echo(visible(str(part)), nl=False)


def json(value: Any) -> None:
    """Print a value as JSON."""
    _emit(as_json(value))


@contextmanager
def paged() -> Iterator[None]:
    """Hold back the lines printed meanwhile, and show them in the user's pager if they are many."""
    if _held or not _may_page():
        yield
        return
    lines: list[str] = []
    _held.append(lines)
    try:
        yield
    finally:
        _held.clear()
        whole = "\n".join(lines)
        if lines and _is_longer_than_a_screen(click.unstyle(whole)):
            for name, value in _PAGER_OPTIONS.items():
                os.environ.setdefault(name, value)
            click.echo_via_pager(whole, color=color() is None)
        elif lines:
            click.echo(whole)


def _may_page() -> bool:
    """Whether there is a terminal, and the user's pager: $PAGER, else less, as git has it."""
    if not (sys.stdout.isatty() and sys.stdin.isatty()) or is_dumb():
        return False
    import shlex
    import shutil

    try:
        words = shlex.split(os.environ.get("PAGER", "less"))
    except ValueError:
        return False
    return bool(words and words != ["cat"] and shutil.which(words[0]))


def _is_longer_than_a_screen(plain: str) -> bool:
    """Whether a text without styles takes more lines than the terminal has."""
    import shutil

    columns, lines = shutil.get_terminal_size()
    needed = sum(max(1, -(-len(line) // max(1, columns))) for line in plain.split("\n"))
    return needed >= lines  # the last line is the prompt's


def confirm(question: str) -> bool:
    """Ask on stderr for a yes; False for anything else."""
    return click.confirm(visible_line(question), err=True)


def ask(question: str) -> str:
    """Ask on stderr for a line."""
    answer: str = click.prompt(
        visible_line(question), default="", show_default=False, prompt_suffix=" ", err=True
    )
    return answer


def usage(error: click.ClickException) -> None:
    """Print click's message about wrong arguments, which it repeats."""
    message = io.StringIO()
    error.show(message)
    for line in message.getvalue().rstrip("\n").split("\n"):
        say(line, err=True)


def progress(label: str) -> Any:
    """Return a bar on stderr for a fraction of one, with its label as wide as the terminal at most."""
    room = (terminal.width(err=True) or 80) - terminal.columns(label) - 25  # for per cent and time
    return click.progressbar(
        length=1, label=visible_line(label), file=sys.stderr, width=max(1, min(36, room))
    )


def _emit(safe: str, err: bool = False) -> None:
    if _held and not err:
        _held[-1].append(safe)
    else:
        click.echo(safe, err=err)


def _line(parts: tuple[object, ...]) -> str:
    return "".join(part if isinstance(part, Styled) else visible_line(str(part)) for part in parts)
