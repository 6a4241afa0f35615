"""A `lessons` command in a process of its own, of lower priority, such as would keep the watcher busy."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable


class Job:
    """A process that was started. It goes on when the one that started it ends, unless that stops it."""

    def __init__(self, words: list[str], output: int) -> None:
        """Start `lessons` with these words; it prints to the open file `output`. Raises OSError."""
        self._output = os.dup(output)
        self._offset = os.fstat(output).st_size
        self._process = subprocess.Popen(
            [sys.executable, "-m", "vault_index", *words],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd="/",
            start_new_session=True,  # a group of its own, which `stop` ends: pip runs in it, too
        )
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, self._process.pid, 10)

    def call_at_end(self, ended: Callable[[], None]) -> None:
        """Call a function once the process has ended, from a thread."""

        def wait() -> None:
            self._process.wait()
            ended()

        threading.Thread(target=wait, daemon=True, name="job").start()

    @property
    def succeeded(self) -> bool | None:
        """Whether it ended with exit status 0; None while it runs."""
        status = self._process.poll()
        return None if status is None else status == 0

    def close(self) -> str:
        """Return what it printed, and close its output. The process must have ended."""
        if self.succeeded:
            self._allow_next()
        size = os.fstat(self._output).st_size - self._offset
        printed = os.pread(self._output, max(0, size), self._offset)
        os.close(self._output)
        return printed.decode("utf-8", "replace").strip()

    def stop(self) -> None:
        """End it if it runs. The files it has written by then stay."""
        if self.succeeded is None:
            with contextlib.suppress(OSError):
                os.killpg(self._process.pid, signal.SIGTERM)
        self._allow_next()

    def _allow_next(self) -> None:
        """Let the next start at once: see `background_index`."""
        with contextlib.suppress(OSError):
            os.utime(self._output, (0, 0))
