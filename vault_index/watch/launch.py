"""The watcher from outside: is there one, start one, stop it. One per vault: a file lock decides.

How one is started is in `starting`, which the hook can afford to load.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vault_index import files, index_files, ownership
from vault_index.errors import VaultError
from vault_index.watch import line, starting

LOCK, LOG, LOG_BYTES = starting.LOCK, starting.LOG, starting.LOG_BYTES
RESTART_SECONDS = starting.RESTART_SECONDS
STOP_SECONDS = 5  # to end by itself; then it is killed


def take_lock(folder: Path) -> int | None:
    """Take the lock of a vault's watcher and return its file descriptor; None if somebody has it.

    `folder` is the vault's `.vault_index`. Raises WriteError.
    """
    with files.writing(folder), _opened(folder) as handle:
        return starting.take_lock(handle)


def start(root: Path, folder: Path) -> bool:
    """Start a watcher in the background unless there is one. False if there is one, or just was.

    Raises WriteError where no lock can be taken.
    """
    with files.writing(folder), _opened(folder) as handle:
        lock = starting.take_lock(handle)
        if lock is None:
            return False
        try:
            if not starting.may_start(lock):
                return False
            starting.spawn(str(root), handle, lock)
        finally:
            os.close(lock)
    return True


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[int]:
    """Open a `.vault_index`, made ours."""
    ownership.claim(folder)
    handle = index_files.open_folder(str(folder))
    try:
        yield handle
    finally:
        os.close(handle)


def status(root: Path) -> dict[str, Any] | None:
    """Ask the watcher how it is; None without one. Raises VaultError if it does not answer."""
    try:
        return line.ask(str(root), {"ask": "status"}, timeout=STOP_SECONDS)
    except line.NobodyListens:
        return None
    except line.NoAnswer as error:
        raise VaultError(
            f"the watcher of {root} does not answer: {error}", "`lessons watch --stop` ends it"
        ) from None


def stop(root: Path, folder: Path) -> bool:
    """End the watcher, by asking, then by signals. False if there was none. Raises WriteError."""
    if not is_running(folder):
        return False
    try:
        line.ask(str(root), {"ask": "stop"}, timeout=1)
        said = True
    except (line.NobodyListens, line.NoAnswer):
        said = False
    for how in (None if said else signal.SIGTERM, signal.SIGKILL):
        if how is not None:
            _send(folder, how)
        until = time.monotonic() + STOP_SECONDS
        while time.monotonic() < until:
            if not is_running(folder):
                return True
            time.sleep(0.02)
    raise VaultError(f"the watcher of {root} cannot be ended", f"see {folder / LOG}")


def is_running(folder: Path) -> bool:
    """Tell whether the lock is held: a watcher runs, starts or ends."""
    if not ownership.is_folder(folder):
        return False
    descriptor = take_lock(folder)
    if descriptor is None:
        return True
    os.close(descriptor)
    return False


def _send(folder: Path, number: int) -> None:
    """Send a signal to the process that the lock file names, while it is still held."""
    with contextlib.suppress(OSError, ValueError):
        pid = int(ownership.read_text(folder / LOCK))
        if is_running(folder):
            os.kill(pid, number)
