"""Start the process that takes in the transcripts which grew: one at a time, however many hooks ask."""

from __future__ import annotations

import fcntl
import os

from vault_index.hotpath import grown, index_files, log, start

LOCK, LOG = "lock", "log"
COMMAND = "journal-take"


def take_lock(spool: int) -> int | None:
    """Take the lock of the process that takes transcripts in; None if it is held. Raises OSError."""
    lock = index_files.open_in(spool, LOCK, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return lock
    except OSError:
        os.close(lock)
        return None


def start_process(journal: str) -> bool:
    """Start a process that takes in what grew, unless one runs. Whether it was started.

    It is in a session of its own: an agent that ends ends its own processes. Raises OSError.
    """
    spool = grown.open_spool(journal)
    try:
        lock = take_lock(spool)
        if lock is None:
            return False
        try:
            output = log.open_for_appending(spool, LOG)
            try:
                start.spawn_with([COMMAND, "--lock", str(lock)], lock, output)
            finally:
                os.close(output)
        finally:
            os.close(lock)
    finally:
        os.close(spool)
    return True
