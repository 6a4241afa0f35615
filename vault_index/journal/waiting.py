"""Capture the transcripts that wait, and bring the index up to date.

One process at a time does it, under a lock that nobody waits for: a process that finds it held has
noted its transcript before, and the holder looks once more after it has let go.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from vault_index.errors import StateError, VaultError, WriteError
from vault_index.journal import backlog, index
from vault_index.journal.capture import capture
from vault_index.journal.journal import Journal
from vault_index.transcripts import reading


def catch_up(journal: Journal, say: Callable[[str], None], *, lock: int | None = None) -> int:
    """Capture what waits, and bring the index up to date; return the number of captured transcripts.

    `lock` is the one that this process was started with. Nothing happens while another process
    holds it. Vectors that take long are left to who calls. An unreadable transcript is said and no longer
    waits; one whose session cannot be written waits on. Raises VaultError.
    """
    captured = 0
    lock = backlog.lock(journal) if lock is None else lock
    while lock is not None:
        try:
            captured += _capture_all(journal, say)
            if captured:
                index.sync(journal, wait=True, completes=False)
        finally:
            os.close(lock)
        # what was noted while we held the lock
        lock = backlog.lock(journal) if backlog.waiting(journal) else None
    return captured


def _capture_all(journal: Journal, say: Callable[[str], None]) -> int:
    captured = 0
    while notes := backlog.waiting(journal):
        for note in notes:
            try:
                capture(journal, note.transcript, reading.agent_of(note.transcript))
                captured += 1
            except (StateError, WriteError):  # the transcript waits on
                raise
            except VaultError as error:
                say(f"error: {'; '.join(filter(None, (error.message, error.hint)))}")
            except Exception as error:  # noqa: BLE001  # a bug of ours; others still get in
                say(f"error: {note.transcript}: {type(error).__name__}: {error}")
            backlog.remove(journal, note)
    return captured
