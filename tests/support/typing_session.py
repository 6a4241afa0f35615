"""Claude Code in a terminal, as a person sees it and types to it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.watchers import soon

SIZE = (40, 120)  # lines, columns
_ESCAPES = re.compile(r"\x1b\[[0-9;?<>=]*[a-zA-Z]|\x1b\][^\x07]*\x07|\x1b.|\s")
CHOSEN = "\u276f"  # before the choice of a list, and before what is typed
DOWN, ENTER, CLEAR = "\x1b[B", "\r", "\x15"
TRIES, PATIENCE_SECONDS = 6, 15
SETTLE_SECONDS = 1.5  # between looks at a list that may be drawn again


class TypingSession:
    """The real CLI in a pseudo-terminal while the `with` block runs; its processes end with it."""

    def __init__(self, claude: Path, folder: Path, environ: dict[str, str]) -> None:
        self._screen = ""
        self._terminal, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", *SIZE, 0, 0))
        self._process = subprocess.Popen(
            [claude],
            cwd=folder,
            env=environ | {"TERM": "xterm-256color"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def sees(self, words: str, seconds: float = 90) -> None:
        """Wait until words were drawn since the last key; gaps and colours do not count."""
        wanted = _ESCAPES.sub("", words)
        try:
            soon(lambda: wanted in _ESCAPES.sub("", self._screen), seconds)
        except AssertionError:
            shown = _ESCAPES.sub("", self._screen)
            raise AssertionError(f"{words!r} is not on the screen: {shown}") from None

    def types(self, keys: str, then: str) -> None:
        """Type keys until words are drawn: an agent that draws loses what is typed on a busy machine."""
        for _ in range(TRIES - 1):
            self._press(keys)
            try:
                self.sees(then, PATIENCE_SECONDS)
                return
            except AssertionError:
                if keys.isprintable():
                    self._press(CLEAR)  # a half of them may have arrived
        self._press(keys)
        self.sees(then)

    def chooses(self, words: str) -> None:
        """Move to a line of a list, until it stays chosen: the agent draws its first list twice."""
        wanted, settled = _ESCAPES.sub("", CHOSEN + words), 0
        until = time.monotonic() + 90
        while settled < 2:
            assert time.monotonic() < until, f"{words!r} was not chosen"
            shown = _ESCAPES.sub("", self._screen)
            settled = settled + 1 if shown[shown.rfind(CHOSEN) :].startswith(wanted) else 0
            if not settled:
                os.write(self._terminal, DOWN.encode())
            time.sleep(SETTLE_SECONDS)

    def _press(self, keys: str) -> None:
        self._screen = ""
        os.write(self._terminal, keys.encode())

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._terminal, 65536)
            except OSError:  # the other end is closed
                return
            if not data:
                return
            self._screen += data.decode("utf-8", "replace")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the window."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._reader.join(10)
        os.close(self._terminal)
