"""`lessons index` in the background: hooks, git's hooks and the watcher all start it here.

One runs at a time for a vault: it holds a lock on its own log, `.vault_index/background.log`, for as
long as it runs. None starts within RESTART_SECONDS of the last line of that log, unless the watcher
saw the last one succeed and set the log's time back: ten agents that prompt at once start one index,
not ten, and one that fails is not repeated with each prompt.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

from vault_index import files
from vault_index.hotpath import index_files, log
from vault_index.store import ownership
from vault_index.vault import Vault
from vault_index.watch.job import Job

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
    try:
        fcntl.flock(output, fcntl.LOCK_EX | fcntl.LOCK_NB)
        last = os.fstat(output)
        if not last.st_size or not 0 <= time.time() - last.st_mtime < RESTART_SECONDS:
            return output
    except OSError:  # one runs
        pass
    os.close(output)
    return None
