"""Take in the transcripts that wait, and bring the index up to date.

One process at a time does it, under a lock that nobody waits for: whoever finds it held has noted its
transcript before, and the holder looks once more after it has let go.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from vault_index.errors import VaultError, WriteError
from vault_index.journal import index, places, spool
from vault_index.journal.journal import Journal
from vault_index.journal.take import take


def catch_up(journal: Journal, say: Callable[[str], None], *, lock: int | None = None) -> int:
    """Take in what waits, and bring the index up to date; return how many transcripts were taken in.

    `lock` is the one that this process was started with. Nothing happens while another process
    holds it. What cannot be read is said and no longer waits; what cannot be written goes on waiting.
    Raises VaultError.
    """
    taken = 0
    while True:
        lock = spool.take_lock(journal) if lock is None else lock
        if lock is None:
            return taken
        try:
            taken += _take_all(journal, say)
            if taken:
                index.sync(journal, wait=True)
        finally:
            os.close(lock)
        lock = None
        if not spool.waiting(journal):  # noted while we held the lock
            return taken


def _take_all(journal: Journal, say: Callable[[str], None]) -> int:
    taken = 0
    while notes := spool.waiting(journal):
        for written in notes:
            try:
                take(journal, written.transcript, places.agent_of(written.transcript))
                taken += 1
            except WriteError:
                raise
            except VaultError as error:
                say(f"error: {error.message}")
            except Exception as error:  # noqa: BLE001  # a bug of ours; others still get in
                say(f"error: {written.transcript}: {type(error).__name__}: {error}")
            spool.remove(journal, written)
    return taken
