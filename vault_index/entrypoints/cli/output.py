"""Everything that the command line prints, and the keys that it asks for, go through here.

Texts from files, git, servers and arguments may hold characters that a terminal obeys: these are
shown as ``, never sent. Only `styled` makes escapes. A test refuses other ways to print.
"""

from __future__ import annotations

import io
import os
import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any, TextIO

import click

from vault_index.api import codec
from vault_index.text.quote import as_json, visible, visible_line

ELLIPSIS = "…"
MIN_COLUMNS = 20  # in a narrower terminal, or one without a size, lines are not cut

_ESCAPE = r"\x1b\[[0-9;]*m"
_PIECE = re.compile(rf"({_ESCAPE})|(.)", re.DOTALL)


# What a coding agent sets for each command that it runs: seen in Claude Code 2.1.329, Codex 0.171.0,
# Gemini CLI 0.61.0, Copilot CLI 1.0.102, opencode 1.18.33; by its documentation in Cursor. The sandbox of
# older versions of Codex has a variable of its own.
AGENT_VARIABLES = (
    *("CLAUDECODE", "CODEX_THREAD_ID", "CODEX_SANDBOX_NETWORK_DISABLED", "GEMINI_CLI"),
    *("COPILOT_CLI", "OPENCODE", "CURSOR_AGENT"),
)


def is_for_agent() -> bool:
    """Whether an agent typed this command, as its environment says: nobody answers a question then."""
    return any(os.environ.get(name) for name in AGENT_VARIABLES)


def screen_width(*, err: bool = False) -> int | None:
    """Return the columns of stdout, or of stderr; None if it is not a terminal of a person."""
    stream: TextIO = sys.stderr if err else sys.stdout
    if not stream.isatty() or is_for_agent():
        return None
    import shutil

    columns = shutil.get_terminal_size().columns
    return columns if columns >= MIN_COLUMNS else None


def columns(text: str) -> int:
    """Return the columns that a line without escapes takes."""
    if text.isascii():
        return len(text)
    return sum(map(_columns, text))


def clip(line: str, room: int | None) -> str:
    """Cut a line to some columns and end it with "…"; escapes take none, and all of them stay."""
    if room is None or _visible_columns(line) <= room:
        return line
    parts: list[str] = []
    room -= columns(ELLIPSIS)
    for escape, char in _PIECE.findall(line):
        if escape:
            parts.append(escape)
        elif room >= 0:
            room -= columns(char)
            parts.append(char if room >= 0 else ELLIPSIS)
    return "".join(parts)


def wrap(line: str, room: int | None, indent: int = 0) -> str:
    """Break a line between words so that each part fits; what is one word, such as a path, stays whole.

    The parts after the first are indented.
    """
    if room is None or _visible_columns(line) <= room:
        return line
    lines: list[str] = []
    words = re.findall(r"\s*\S+", line)
    now = ""
    for word in words:
        if now.strip() and _visible_columns(now + word) > room:
            lines.append(now)
            now = " " * indent + word.lstrip()
        else:
            now += word
    return "\n".join([*lines, now])


def _visible_columns(line: str) -> int:
    return columns(re.sub(_ESCAPE, "", line))


def _columns(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


# less: end at once where all fits, pass colours on, leave the text on the screen
_PAGER_OPTIONS = {"LESS": "FRX", "LV": "-c"}

HOOK_FD = "LESSONS_HOOK_FD"  # names the stream of a git hook
_held: list[list[str]] = []  # the lines that a pager may be needed for, while they come


class Styled(str):
    """A text that is safe to print as it is: made safe, then given a style of ours."""

    __slots__ = ()


def is_dumb() -> bool:
    """Whether the terminal says that it obeys no escapes."""
    return os.environ.get("TERM") == "dumb"


def color() -> bool | None:
    """Return False where nobody wants a colour or the terminal has none; None: look at the stream."""
    return False if os.environ.get("NO_COLOR") or is_dumb() or is_for_agent() else None


TAB = Styled("\t")  # between columns of what another program reads


def styled(text: object, **style: Any) -> Styled:
    """Return a text in a style of the terminal, such as `bold=True`; what it says is made safe."""
    return Styled(click.style(visible_line(str(text)), **style))


def say(*parts: object, err: bool = False, indent: int = 0) -> None:
    """Print one line, on stderr with `err`. The parts stand side by side.

    At a terminal it is broken between words, and what follows is indented.
    """
    _emit(wrap(_line(parts), screen_width(err=err), indent), err)


def error(message: str, hint: str = "") -> None:
    """Print on stderr what went wrong and, if there is a hint, what to do."""
    say(f"Error: {message}", err=True)
    if hint:
        say(f"Try: {hint}", err=True)


def row(*parts: object) -> None:
    """Print one line of a list, cut where the terminal ends."""
    _emit(clip(_line(parts), screen_width()))


def rows(lines: Iterable[tuple[object, ...]]) -> None:
    """Print the lines of a list, each of some parts, at once: one by one they take ten times as long."""
    width = screen_width()
    clipped = [clip(_line(parts), width) for parts in lines]
    if clipped:
        _emit("\n".join(clipped))


def text(body: object, *, err: bool = False) -> None:
    """Print a text of several lines."""
    _emit(visible(str(body)), err)


def piece(part: object) -> None:
    """Print the next piece of a text as it comes, without an end of line."""
    click.echo(visible(str(part)), nl=False)


def json(value: Any) -> None:
    """Print a value as JSON."""
    _emit(as_json(codec.to_json(value)))


def keys_of(values: Iterable[Any], *names: str) -> list[dict[str, Any]]:
    """Return these attributes of each value, as JSON shows them."""
    return [{name: getattr(value, name) for name in names} for value in values]


@contextmanager
def of_hook() -> Iterator[None]:
    """Print where a git hook says, as it comes: it keeps stdout and stderr of what may not start."""
    try:
        named = int(os.environ.get(HOOK_FD, ""))
        stream = os.fdopen(named, "w", 1, errors="backslashreplace", closefd=False)
    except (ValueError, OSError):
        yield
        return
    with stream, redirect_stdout(stream), redirect_stderr(stream):
        yield


@contextmanager
def paged() -> Iterator[None]:
    """Hold back the lines printed meanwhile, and show them in the user's pager, `$PAGER` or less.

    As with git, an empty `$PAGER` does not run. A text that fits on the screen is printed.
    """
    is_screen = sys.stdout.isatty() and not is_dumb() and not is_for_agent()
    if _held or not is_screen or os.environ.get("PAGER") == "":
        yield
        return
    lines: list[str] = []
    _held.append(lines)
    try:
        yield
    finally:
        _held.clear()
        for name, value in _PAGER_OPTIONS.items():
            os.environ.setdefault(name, value)
        whole = "\n".join(lines)
        try:
            if _is_longer_than_a_screen(whole):
                click.echo_via_pager(whole, color=color() is None)
            elif lines:
                click.echo(whole)
        except ValueError:  # a quote in $PAGER without its end
            click.echo(whole)


def _is_longer_than_a_screen(shown: str) -> bool:
    import shutil

    width, height = shutil.get_terminal_size()
    needed = sum(
        max(1, -(-len(line) // max(1, width))) for line in click.unstyle(shown).split("\n")
    )
    return needed >= height  # the last line is the prompt's


def confirm(question: str, *, default: bool = False) -> bool:
    """Ask on stderr for a yes; the default for Enter, False for anything else."""
    return click.confirm(visible_line(question), default=default, err=True)


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
    room = (screen_width(err=True) or 80) - columns(label) - 11  # for brackets and per cent
    has_time = room > 14  # for days and a time, too
    return click.progressbar(
        length=1,
        label=visible_line(label),
        file=sys.stderr,
        show_eta=has_time,
        width=max(1, min(36, room - 14 * has_time)),
    )


def _emit(safe: str, err: bool = False) -> None:
    if _held and not err:
        _held[-1].append(safe)
    else:
        click.echo(safe, err=err)


def _line(parts: tuple[object, ...]) -> str:
    return "".join(part if isinstance(part, Styled) else visible_line(str(part)) for part in parts)


END = ""  # of the terminal: Ctrl-D, or it was closed
_END_OF_FILE, _INTERRUPT = b"\x04", b"\x03"
_MAX_BYTES = 32  # of a key: an arrow sends three


def press(question: str) -> str:
    """Ask on stderr for a key and return it in small letters; END at the end of the terminal.

    Keys pressed before the question are dropped, unlike those pressed while it is printed: click's
    `getchar` drops both. A key that sends several characters, and a paste, is "?". Ctrl-C raises
    KeyboardInterrupt.
    """
    import termios
    import tty

    descriptor = sys.stdin.fileno()
    try:
        before: Any = termios.tcgetattr(descriptor)
    except termios.error:
        return ask(question).strip().lower()[:1] or "?"
    try:
        tty.setcbreak(descriptor, termios.TCSAFLUSH)
        mode = termios.tcgetattr(descriptor)
        mode[3] &= ~termios.ISIG  # Ctrl-C is a key
        termios.tcsetattr(descriptor, termios.TCSANOW, mode)
        say(question, err=True)
        pressed = os.read(descriptor, _MAX_BYTES)
    except OSError:  # the terminal was closed
        return END
    finally:
        with suppress(termios.error):
            termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
    if pressed == _INTERRUPT:
        raise KeyboardInterrupt
    if pressed in (b"", _END_OF_FILE):
        return END
    text = pressed.decode("utf-8", "replace").lower()
    return text if len(text) == 1 else "?"


def from_here(path: Path, root: Path) -> str:
    """Return a path in the vault from the current folder; an absolute one from outside the vault."""
    base = Path(os.path.realpath(root))
    try:
        here = Path.cwd()
    except OSError:  # it was deleted
        return str(path)
    if here != base and base not in here.parents:
        return str(path)
    return os.path.relpath(base / path.relative_to(root), here)
