"""One writer of the journal at a time. Readers need no lock: files are replaced whole."""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vault_index import files
from vault_index.files.private import make_folder

__all__ = ["FILE", "held", "make_folder"]
FILE = ".lock"
_here = threading.RLock()  # flock does not keep threads of one process apart
_held: set[Path] = set()


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Hold the lock of a journal, which is made if it is missing, as often as its holder asks.

    The system takes it from a process that dies. Raises WriteError.
    """
    with _here:
        if folder in _held:
            yield
            return
        make_folder(folder)
        with files.writing(folder):
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            descriptor = os.open(folder / FILE, flags, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            _held.add(folder)
            yield
        finally:
            _held.discard(folder)
            os.close(descriptor)
