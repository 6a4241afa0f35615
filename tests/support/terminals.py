"""A terminal for tests: a program that runs in one, what it prints there, and what is typed."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.commands import BIN


def at_terminal(
    *command: str | Path,
    cwd: Path,
    typed: Sequence[tuple[str, str]] = (),
    size: tuple[int, int] = (24, 80),
    env: Mapping[str, str] | None = None,
    seconds: float = 60,
) -> tuple[int, str]:
    """Run a program in a terminal of (lines, columns); give how it ended and all that was shown.

    `typed` are pairs: what to wait for, and then what to type.
    """
    words = [str(word) for word in command]
    words[0] = str(BIN / words[0]) if words[0].startswith("lessons") else words[0]
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    environ = {**os.environ, "TERM": "xterm", **(env or {})}
    for name in ("COLUMNS", "LINES"):
        environ.pop(name, None)
    running = subprocess.Popen(
        words,
        cwd=cwd,
        env=environ,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    shown, waiting, seen = "", list(typed), 0
    until = time.monotonic() + seconds
    try:
        while time.monotonic() < until:
            if select.select([ours], [], [], 0.2)[0]:
                try:
                    data = os.read(ours, 65536)
                except OSError:  # the other end is closed
                    break
                shown += data.decode("utf-8", "replace")
            if waiting and waiting[0][0] in shown[seen:]:
                seen = len(shown)
                os.write(ours, waiting.pop(0)[1].encode())
        else:
            raise AssertionError(f"not at an end within {seconds} s: {shown!r}")
        return running.wait(timeout=60), shown.replace("\r\n", "\n")
    finally:
        running.kill()
        running.wait()
        os.close(ours)
