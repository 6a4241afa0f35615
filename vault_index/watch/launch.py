"""The watcher as commands see it: whether it runs, start it, stop it. A file lock allows one a vault.

How it is started is in `hotpath.start`, which the hook can afford to load.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vault_index import files
from vault_index.errors import VaultError
from vault_index.hotpath import index_files, protocol
from vault_index.hotpath.start import LOCK, LOG, may_start, spawn, take_lock_in
from vault_index.store import ownership

__all__ = ["LOCK", "LOG", "is_running", "start", "status", "stop", "take_lock"]

STOP_SECONDS = 5  # for a watcher to end by itself; then it is killed


def take_lock(folder: Path) -> int | None:
    """Take the lock of a vault's watcher and return its file descriptor; None if it is held.

    `folder` is the vault's `.vault_index`. Raises WriteError.
    """
    with files.writing(folder), _opened(folder) as handle:
        return take_lock_in(handle)


def start(root: Path, folder: Path) -> bool:
    """Start a watcher in the background unless one runs, or ran a moment ago. Whether one was started.

    Raises WriteError where no lock can be taken.
    """
    with files.writing(folder), _opened(folder) as handle:
        lock = take_lock_in(handle)
        if lock is None:
            return False
        try:
            if not may_start(lock):
                return False
            spawn(str(root), handle, lock)
        finally:
            os.close(lock)
    return True


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[int]:
    """Open a `.vault_index` after claiming it."""
    ownership.claim(folder)
    handle = index_files.open_folder(str(folder))
    try:
        yield handle
    finally:
        os.close(handle)


def status(root: Path) -> dict[str, Any] | None:
    """Return the watcher's own account; None without one. Raises VaultError if it does not answer."""
    try:
        return protocol.ask(str(root), {"ask": "status"}, timeout=STOP_SECONDS)
    except protocol.NoWatcher:
        return None
    except protocol.NoAnswer as error:
        raise VaultError(
            f"the watcher of {root} does not answer: {error}", "end it with `lessons watch --stop`"
        ) from None


def stop(root: Path, folder: Path) -> bool:
    """End the watcher: ask it, then send signals. Whether there was one. Raises WriteError."""
    if not is_running(folder):
        return False
    try:
        protocol.ask(str(root), {"ask": "stop"}, timeout=1)
        first = None
    except (protocol.NoWatcher, protocol.NoAnswer):
        first = signal.SIGTERM
    for number in (first, signal.SIGKILL):
        if number is not None:
            _send(folder, number)
        until = time.monotonic() + STOP_SECONDS
        while time.monotonic() < until:
            if not is_running(folder):
                return True
            time.sleep(0.02)
    raise VaultError(f"the watcher of {root} cannot be ended", f"see {folder / LOG}")


def is_running(folder: Path) -> bool:
    """Whether the lock is held: a watcher runs, starts or ends."""
    if not ownership.is_folder(folder):
        return False
    descriptor = take_lock(folder)
    if descriptor is None:
        return True
    os.close(descriptor)
    return False


def _send(folder: Path, number: int) -> None:
    """Send a signal to the process that the lock file names, while the lock is held."""
    with contextlib.suppress(OSError, ValueError):
        pid = int(ownership.read_text(folder / LOCK))
        if is_running(folder):
            os.kill(pid, number)
