"""The user's pager, as git has it: $PAGER, else less, at a terminal, for more than a screenful."""

from __future__ import annotations

import os
import sys

# less: end at once where all fits, pass colours on, leave the text on the screen
_OPTIONS = {"LESS": "FRX", "LV": "-c"}


def is_wanted() -> bool:
    """Whether there is a terminal that a pager could use."""
    return sys.stdout.isatty() and sys.stdin.isatty() and os.environ.get("TERM") != "dumb"


def is_longer_than_a_screen(plain: str) -> bool:
    """Whether a text without styles takes more lines than the terminal has."""
    import shutil

    columns, lines = shutil.get_terminal_size()
    needed = 0
    for line in plain.split("\n"):
        needed += max(1, -(-len(line) // max(1, columns)))
        if needed >= lines:  # the last line is the prompt's
            return True
    return False


def show(text: str) -> bool:
    """Show a text that is safe to print, a page at a time. False where there is no pager."""
    import signal
    import subprocess

    command = _command()
    if not command:
        return False
    env = {**_OPTIONS, **os.environ}
    try:
        running = subprocess.Popen(command, stdin=subprocess.PIPE, env=env)
    except OSError:
        return False
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the pager's
    try:
        running.communicate(f"{text}\n".encode("utf-8", "replace"))
    finally:
        signal.signal(signal.SIGINT, before)
    return True


def _command() -> list[str]:
    """Return the words of the pager's command; none where the user wants none or it cannot be run."""
    import shlex
    import shutil

    named = os.environ.get("PAGER")
    try:
        words = ["less"] if named is None else shlex.split(named)
    except ValueError:
        return []
    return words if words and words != ["cat"] and shutil.which(words[0]) else []
