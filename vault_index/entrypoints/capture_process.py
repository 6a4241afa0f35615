"""Capture the transcripts that grew, in a process that a hook or a watcher started beside itself.

Then it learns from the sessions that ended, where the user's settings want that: `[learn] auto`.

`python -m vault_index journal-take --lock DESCRIPTOR` comes here: no command line is loaded.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path
from typing import Any

from vault_index import api
from vault_index.hotpath import start
from vault_index.text.quote import visible_line

HANG_SECONDS = 1800  # the system ends a process that hangs longer: its lock keeps others out
LEARN_SECONDS = 3600  # the same while it learns: a small model is slow, and nobody waits
SETTLE_SECONDS = 1.0  # an agent writes the end of a turn after its hook began
PRIORITY = 10  # lower than what people wait for


def is_asked_for(words: list[str]) -> bool:
    """Whether the words of a command are those with which this process is started."""
    return len(words) == 3 and words[:2] == [start.COMMAND, "--lock"]


def main(words: list[str]) -> int:
    """Capture what waits, under the lock that was taken for it, and once more what grew since."""
    signal.alarm(HANG_SECONDS)
    os.chdir("/")
    if os.getsid(0) != os.getpid():
        os.setsid()
    with contextlib.suppress(OSError):
        os.nice(PRIORITY)
    # More would be no quicker, and spin for 20 ms after each product on a core others need.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from vault_index import config
    from vault_index.errors import VaultError
    from vault_index.journal import backlog, capture
    from vault_index.journal.journal import Journal

    lock = int(words[2])
    os.set_inheritable(lock, False)
    try:
        journal = Journal(config.load())
        grew = [note.transcript for note in backlog.waiting(journal)]
        before = list(map(_size, grew))
        capture.catch_up(journal, _say, lock=lock)
        time.sleep(SETTLE_SECONDS)
        later = [file for file, size in zip(grew, before, strict=True) if _size(file) != size]
        if later:
            backlog.add(journal, later)
            capture.catch_up(journal, _say)
        if backlog.ended(journal):
            from vault_index.learn import run

            signal.alarm(LEARN_SECONDS)
            run.run_ended(journal, _learn, _say)
    except VaultError as error:
        _say(f"error: {error.message}")
        return 1
    return 0


def _learn(root: str, values: dict[str, Any]) -> dict[str, Any]:
    """Learn from a session in a vault; its watcher answers what has to be looked up."""
    from vault_index import client

    question = api.learn.learn(**values)
    return client.ask(root, question, client.Options(fetch=False))


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return -1


def _say(message: str) -> None:
    """Write lines to the log that is our output."""
    stamp = time.strftime("%Y-%m-%d %H:%M:%S")
    lines = [f"{stamp} {visible_line(line)}\n" for line in message.splitlines()]
    os.write(1, "".join(lines).encode("utf-8", "replace"))
