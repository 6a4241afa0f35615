"""Commands of lower priority in the background: hooks, git's hooks and the watcher start them here.

One runs at a time for a vault: it holds a lock on its own log, `.vault_index/background.log`, for as
long as it runs. None starts within RESTART_SECONDS of the last line of that log, unless the watcher
saw the last one succeed and set the log's time back: ten agents that prompt at once start one index,
not ten, and one that fails is not repeated with each prompt.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from vault_index import files
from vault_index.hotpath import index_files, log
from vault_index.store import ownership
from vault_index.vault import Vault

LOG = "background.log"
RESTART_SECONDS = 20


def start(vault: Vault, *options: str, wait: bool = False) -> Job | None:
    """Start `lessons index` with these options; None if one runs, or did a moment ago.

    It ends at once if another process is indexing, unless it is to `wait`. Raises WriteError.
    """
    words = ["--vault", str(vault.root), "index", "--no-fetch"]
    words += [*([] if wait else ["--no-wait"]), *options]
    with files.writing(vault.index_dir):
        ownership.claim(vault.index_dir)
        output = _take_log(vault.index_dir)
        if output is None:
            return None
        try:
            stamp = time.strftime("%Y-%m-%d %H:%M:%S")
            os.write(output, f"{stamp} lessons {' '.join(words[2:])}\n".encode())
            return Job(words, output)
        finally:
            os.close(output)


def _take_log(folder: Path) -> int | None:
    """Open the log and lock it; None if another index holds it, or wrote to it a moment ago."""
    opened = index_files.open_folder(str(folder))
    try:
        output = log.open_for_appending(opened, LOG)
    finally:
        os.close(opened)
    if index_files.try_lock(output):
        last = os.fstat(output)
        if not last.st_size or not 0 <= time.time() - last.st_mtime < RESTART_SECONDS:
            return output
    os.close(output)
    return None


# A `lessons` command in a process of its own, of lower priority, such as would keep the watcher busy.


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
