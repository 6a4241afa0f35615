"""One key pressed at a terminal, without Enter; a line where the terminal cannot do that."""

from __future__ import annotations

import os
import sys

from vault_index.entrypoints.cli import output

END = ""  # of the terminal: Ctrl-D, or it was closed
_END_OF_FILE, _INTERRUPT = b"\x04", b"\x03"
_MAX_BYTES = 32  # of a key: an arrow sends three


def press(question: str) -> str:
    """Ask on stderr for a key and return it in small letters; END at the end of the terminal.

    Keys pressed before the question are dropped. A key that sends several characters, and a paste,
    is "?". Ctrl-C raises KeyboardInterrupt. The terminal is left as it was.
    """
    import termios

    descriptor = sys.stdin.fileno()
    try:
        before = termios.tcgetattr(descriptor)
    except termios.error:
        return output.ask(question).strip().lower()[:1] or "?"
    try:
        _without_signals(descriptor)
        output.say(question, err=True)
        pressed = os.read(descriptor, _MAX_BYTES)
    except OSError:  # the terminal was closed
        return END
    finally:
        _restore(descriptor, before)
    if pressed == _INTERRUPT:
        raise KeyboardInterrupt
    if pressed in (b"", _END_OF_FILE):
        return END
    text = pressed.decode("utf-8", "replace").lower()
    return text if len(text) == 1 else "?"


def _without_signals(descriptor: int) -> None:
    """Let each key come as it is pressed, Ctrl-C too; what was typed before is dropped."""
    import termios
    import tty

    tty.setcbreak(descriptor, termios.TCSAFLUSH)
    mode = termios.tcgetattr(descriptor)
    mode[3] &= ~termios.ISIG
    termios.tcsetattr(descriptor, termios.TCSANOW, mode)


def _restore(descriptor: int, before: list[object]) -> None:
    import contextlib
    import termios

    with contextlib.suppress(termios.error):
        # what tcgetattr returned, of which typeshed knows two types
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)  # type: ignore[arg-type]
