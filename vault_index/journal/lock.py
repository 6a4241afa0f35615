"""One writer of the journal at a time. Readers need no lock: files are replaced whole."""

from __future__ import annotations

import fcntl
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vault_index import files
from vault_index.errors import WriteError

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


def make_folder(folder: Path) -> None:
    """Make a folder of the journal, with those above it, for its user alone.

    Raises WriteError, also for a link in its place.
    """
    with files.writing(folder):
        if not folder.parent.is_dir():
            make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
        now = folder.lstat()
        if stat.S_ISLNK(now.st_mode) or now.st_uid != os.geteuid():
            kind = "a link" if stat.S_ISLNK(now.st_mode) else "somebody else's"
            raise WriteError(f"{folder} is {kind}", "remove it, or put a folder in its place")
        if stat.S_IMODE(now.st_mode) & 0o077:
            folder.chmod(0o700)
