"""One writer at a time: the lock of a vault's index, which the system takes from a process that dies."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vault_index import files
from vault_index.store import ownership

_FILE = "lock"


@contextmanager
def held(folder: Path, *, wait: bool) -> Iterator[bool]:
    """Hold the lock of a `.vault_index`, which is made if it is missing.

    Without `wait` it yields False if another process has it. Raises ForeignIndexError, WriteError.
    """
    with files.writing(folder):
        ownership.claim(folder)
        descriptor = ownership.open_file(folder / _FILE, os.O_RDWR | os.O_CREAT)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_free = True
        except BlockingIOError:
            is_free = False
        yield is_free
    finally:
        os.close(descriptor)
