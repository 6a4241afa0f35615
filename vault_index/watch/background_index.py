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
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future

from vault_index import files
from vault_index.hotpath import index_files, log
from vault_index.hotpath.start import is_recent, spawn
from vault_index.store import ownership
from vault_index.vault import Vault

FILES_AT_ONCE = 8  # changed files that are indexed in this process: about 0.2 s
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
        with ownership.opened(vault.index_dir) as folder:
            output = log.open_for_appending(folder, LOG)
        try:
            if not index_files.try_lock(output) or is_recent(output, RESTART_SECONDS):
                return None
            stamp = time.strftime("%Y-%m-%d %H:%M:%S")
            os.write(output, f"{stamp} lessons {' '.join(words[2:])}\n".encode())
            return Job(words, output)
        finally:
            os.close(output)


class Job:
    """A `lessons` command in a process of its own, of lower priority; it would keep the watcher busy.

    It goes on when the process that started it ends, unless that stops it.
    """

    def __init__(self, words: list[str], output: int) -> None:
        """Start `lessons` with these words; it prints to the open file `output`. Raises OSError."""
        self._output = os.dup(output)
        self._offset = os.fstat(output).st_size
        self._pid = spawn(words, output)
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, self._pid, 10)
        self._status: Future[int] = Future()
        threading.Thread(target=self._wait, daemon=True, name="job").start()

    def _wait(self) -> None:
        self._status.set_result(os.waitpid(self._pid, 0)[1])

    def call_at_end(self, ended: Callable[[], None]) -> None:
        """Call a function once the process has ended, from a thread."""
        self._status.add_done_callback(lambda _: ended())

    @property
    def succeeded(self) -> bool | None:
        """Whether it ended with exit status 0; None while it runs."""
        return self._status.result() == 0 if self._status.done() else None

    def close(self) -> str:
        """Return what it printed, and close its output. The process must have ended."""
        if self.succeeded:
            self._allow_next()
        size = os.fstat(self._output).st_size - self._offset
        printed = os.pread(self._output, max(0, size), self._offset)
        os.close(self._output)
        return printed.decode("utf-8", "replace").strip()

    def stop(self) -> None:
        """End it if it runs, with pip if that runs in it. The files it has written by then stay."""
        if self.succeeded is None:
            with contextlib.suppress(OSError):
                os.killpg(self._pid, signal.SIGTERM)
        self._allow_next()

    def _allow_next(self) -> None:
        with contextlib.suppress(OSError):
            os.utime(self._output, (0, 0))
