"""Folders and locks for what belongs to one user alone."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vault_index.errors import WriteError
from vault_index.files import writing
from vault_index.hotpath import index_files


def make_folder(folder: Path) -> None:
    """Make a folder, with those above it, for its user alone.

    Raises WriteError, also for a link in its place.
    """
    with writing(folder):
        if not folder.parent.is_dir():
            make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
        now = folder.lstat()
        if stat.S_ISLNK(now.st_mode) or now.st_uid != os.geteuid():
            kind = "a link" if stat.S_ISLNK(now.st_mode) else "somebody else's"
            raise WriteError(f"{folder} is {kind}", "remove it, or put a folder in its place")
        if stat.S_IMODE(now.st_mode) & 0o077:
            folder.chmod(0o700)


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Hold the lock that a file is, made if it is missing: one thread of all processes at a time.

    The system takes it from a process that dies. Raises WriteError.
    """
    with hold(_open_lock(file)):
        yield


@contextmanager
def alone(file: Path) -> Iterator[bool]:
    """Hold the same lock without waiting for it; False while another has it. Raises WriteError."""
    with hold(_open_lock(file), wait=False) as is_alone:
        yield is_alone


@contextmanager
def hold(descriptor: int, *, wait: bool = True) -> Iterator[bool]:
    """Hold the lock of an open file, and close the file. Without `wait`: False while another has it."""
    try:
        if wait:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield wait or index_files.try_lock(descriptor)
    finally:
        os.close(descriptor)


def _open_lock(file: Path) -> int:
    with writing(file):
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        return os.open(file, flags, 0o600)
