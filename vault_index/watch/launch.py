"""The watcher from outside: is there one, start one, stop it. One per vault: a file lock decides.

Who gets the lock starts the process and hands the lock on to it, open: there is no moment at which
two could start, and however the process ends, the system frees the lock.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from vault_index import files, ownership
from vault_index.errors import VaultError
from vault_index.watch import line

LOCK, LOG = "watch.lock", "watch.log"
RESTART_SECONDS = 3  # a watcher that dies at once is not started with each prompt
LOG_BYTES = 256 * 1024
STOP_SECONDS = 5  # to end by itself; then it is killed

# what an agent or git says to its own children only
_NOT_PASSED_ON = ("CLAUDE", "GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE", "GIT_PREFIX")


def take_lock(folder: Path) -> int | None:
    """Take the lock of a vault's watcher and give its file descriptor; None if somebody has it.

    `folder` is the vault's `.vault_index`. Raises WriteError.
    """
    with files.writing(folder):
        ownership.claim(folder)
        descriptor = ownership.open_file(folder / LOCK, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def start(root: Path, folder: Path) -> bool:
    """Start a watcher in the background unless there is one. False if there is one, or just was.

    Raises WriteError where no lock can be taken.
    """
    descriptor = take_lock(folder)
    if descriptor is None:
        return False
    try:
        started = os.fstat(descriptor)
        if started.st_size and 0 <= time.time() - started.st_mtime < RESTART_SECONDS:
            return False
        with files.writing(folder), _open_log(folder) as log:
            process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "vault_index", "--vault", str(root)),
                    *("watch", "--lock", str(descriptor)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(descriptor,),
                start_new_session=True,
                cwd="/",
                env={k: v for k, v in os.environ.items() if _is_passed_on(k)},
            )
        note_pid(descriptor, process.pid)
        process.returncode = 0  # not ours to wait for
    finally:
        os.close(descriptor)
    return True


def _is_passed_on(name: str) -> bool:
    return name == "CLAUDE_CONFIG_DIR" or not name.startswith(_NOT_PASSED_ON)


def note_pid(descriptor: int, pid: int) -> None:
    """Write into the lock file who holds it, for `stop`."""
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, str(pid).encode(), 0)


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


def _open_log(folder: Path) -> Any:
    log = folder / LOG
    if log.exists() and log.lstat().st_size > LOG_BYTES:
        log.replace(folder / f"{LOG}.old")
    return os.fdopen(ownership.open_file(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT), "ab")
