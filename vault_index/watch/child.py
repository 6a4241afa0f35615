"""A command of lower priority, for what would keep the watcher from answering: indexing, fetching."""

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

RETRY_SECONDS = 30.0  # after one that failed


class Child:
    """One at a time. `wake` is called when it ends; what it printed goes to `say`."""

    def __init__(
        self, root: Path, command: str, wake: Callable[[], None], say: Callable[[str], None]
    ) -> None:
        self._words = ["--vault", str(root), *command.split()]
        self._wake = wake
        self._say = say
        self._process: subprocess.Popen[bytes] | None = None
        self._failed: float | None = None  # when (monotonic)
        self._stopped = False
        self.said = ""  # its last line

    @property
    def runs(self) -> bool:
        """Tell whether there is one, or one whose end was not yet taken."""
        return self._process is not None

    def start(self, *options: str) -> None:
        """Start one, unless there is one or the last failed just now."""
        now = time.monotonic()
        if self.runs or (self._failed is not None and now - self._failed < RETRY_SECONDS):
            return
        words = [sys.executable, "-m", "vault_index", *self._words, *options]
        self._process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd="/",
            start_new_session=True,  # a group of its own, which `stop` ends: pip runs in it, too
        )
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, self._process.pid, 10)
        threading.Thread(target=self._await, args=(self._process,), daemon=True).start()

    def _await(self, process: subprocess.Popen[bytes]) -> None:
        said = process.communicate()[0].decode("utf-8", "replace").strip()
        if said and not self._stopped:
            self.said = said.splitlines()[-1]
            self._say(said)
        self._wake()

    def take_end(self) -> bool | None:
        """Tell, once, that it ended and whether all went well; None while there is no news."""
        if self._process is None or self._process.poll() is None:
            return None
        ok = self._process.returncode == 0
        self._process = None
        self._failed = None if ok else time.monotonic()
        return ok

    def stop(self) -> None:
        """End it if it runs. What it has written by then stays."""
        self._stopped = True
        if self._process is not None:
            with contextlib.suppress(OSError):
                os.killpg(self._process.pid, signal.SIGTERM)
