"""A `lessons index` of lower priority in the background, which hooks and the watcher start here.

One runs at a time for a vault: it holds a lock on its own log, `.vault_index/background.log`, for as
long as it runs. The same one is not started within INDEX_PAUSE_SECONDS of the last line of that log,
unless the watcher saw it succeed and set the log's time back: ten agents that prompt at once start one
index, not ten, and one that fails is not repeated with each prompt. It keeps no other from starting.
"""

from __future__ import annotations

import contextlib
import os
import re
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

INDEX_LOG = "background.log"
INDEX_PAUSE_SECONDS = 20
_TAIL = 64 * 1024  # bytes of the log that are looked at for the last job
_STARTED = re.compile(rb"(?m)^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d lessons (.*)$")


def start_index(vault: Vault, *options: str, wait: bool = False) -> Job | None:
    """Start `lessons index` with these options; None if one runs, or the same did a moment ago.

    It ends at once if another process is indexing, unless it is to `wait`. Raises WriteError.
    """
    words = ["--vault", str(vault.root), "index", "--no-fetch"]
    words += [*([] if wait else ["--no-wait"]), *options]
    with files.writing(vault.index_dir):
        ownership.claim(vault.index_dir)
        with ownership.opened(vault.index_dir) as folder:
            output = log.open_for_appending(folder, INDEX_LOG)
        try:
            if not index_files.try_lock(output):
                return None
            if is_recent(output, INDEX_PAUSE_SECONDS) and _last_started(output) == words[2:]:
                return None
            stamp = time.strftime("%Y-%m-%d %H:%M:%S")
            os.write(output, f"{stamp} lessons {' '.join(words[2:])}\n".encode())
            return Job(words, output)
        finally:
            os.close(output)


def _last_started(output: int) -> list[str]:
    size = os.fstat(output).st_size
    started = _STARTED.findall(os.pread(output, _TAIL, max(0, size - _TAIL)))
    return started[-1].decode("utf-8", "replace").split() if started else []


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
        """Return its output, and close it. The process must have ended."""
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
