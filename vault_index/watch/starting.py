"""The start of a watcher, as the hook sees it: one is started, and waited for while it starts.

A watcher that is starting holds the lock, young, and nobody listens yet. Whoever asks then waits
instead of loading the same model and tables beside it: on two busy cores both would come too late,
and of ten hooks at once nine would. Alone on the machine a first prompt takes a tenth longer than one
that loads all of it itself and starts nothing (0.55 and 0.50 s, where Python takes 16 ms).

Standard library only, and no more of it than needed: this is on the way of a first prompt.
"""

from __future__ import annotations

import fcntl
import os
import sys
import time

from vault_index import index_files, locate
from vault_index.watch import line

TYPE_CHECKING = False  # typing takes 3 ms to load
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

LOCK, LOG = "watch.lock", "watch.log"
RESTART_SECONDS = 3  # a watcher that dies at once is not started with each prompt
STARTING_SECONDS = 15  # one that does not listen by then is hung, and nobody waits for it
POLL_SECONDS = 0.02
POLLS = 5  # for the socket, between two looks whether the watcher still lives
LOG_BYTES = 256 * 1024
MOST_BYTES = 1024 * 1024  # of a settings file

# what an agent or git says to its own children only
_NOT_PASSED_ON = ("CLAUDE", "GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE", "GIT_PREFIX")


def ask(root: str, question: Mapping[str, Any], until: float) -> dict[str, Any] | None:
    """Start the watcher unless one is starting, wait until it listens, and return its answer.

    None if there will be none: hooks are to start none, it died, it takes too long, or the index
    folder is not one of ours yet. `until` is a time of the monotonic clock. Raises line.NoAnswer.
    """
    path = f"{root}/.vault_index"
    try:
        folder = index_files.open_folder(path)
    except OSError:
        return None
    try:
        if not index_files.is_ours(path, locate.home_folder(os.environ)):
            return None
        if not _is_starting(folder) and not _start(root, folder):
            return None
        places = line.places(root)
        while time.monotonic() < until and _is_starting(folder):
            try:
                return line.ask(root, question, until - time.monotonic())
            except line.NobodyListens:
                _wait_for_any(places)
        return None
    finally:
        os.close(folder)


def take_lock(folder: int) -> int | None:
    """Take the lock of a watcher in an index folder that is open; None if somebody has it.

    Whoever only looks holds it for an instant, too: hence the second try. Raises OSError.
    """
    lock = index_files.open_in(folder, LOCK, os.O_RDWR | os.O_CREAT)
    for pause in (0.002, 0.0):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return lock
        except OSError:
            time.sleep(pause)
    os.close(lock)
    return None


def may_start(lock: int) -> bool:
    """Whether the last start was long enough ago, by the lock."""
    last = os.fstat(lock)
    return not (last.st_size and 0 <= time.time() - last.st_mtime < RESTART_SECONDS)


def spawn(root: str, folder: int, lock: int) -> None:
    """Start the process and hand the lock on to it, open: at no moment could two be started.

    However it ends, the system frees the lock. Raises OSError.
    """
    log = _open_log(folder)
    command = [sys.executable, "-P", "-m", "vault_index", "--vault", root]
    command += ["watch", "--lock", str(lock)]
    environ = {name: value for name, value in os.environ.items() if _is_passed_on(name)}
    streams = (
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, log, 1),
        (os.POSIX_SPAWN_DUP2, log, 2),
    )
    os.set_inheritable(lock, True)
    try:
        try:
            pid = os.posix_spawn(command[0], command, environ, file_actions=streams, setsid=True)
        except NotImplementedError:  # the watcher does it itself, a moment later
            pid = os.posix_spawn(command[0], command, environ, file_actions=streams)
    finally:
        os.set_inheritable(lock, False)
        os.close(log)
    note_pid(lock, pid)


def note_pid(lock: int, pid: int) -> None:
    """Write into the lock file who holds it, for `stop`; its time is that of the start."""
    os.ftruncate(lock, 0)
    os.pwrite(lock, str(pid).encode(), 0)


def _start(root: str, folder: int) -> bool:
    """Start one, unless hooks are to start none. False if there is none that starts."""
    if not _is_wanted(root):
        return False
    try:
        lock = take_lock(folder)
        if lock is None:  # somebody was quicker
            return _is_starting(folder)
        try:
            if not may_start(lock):
                return False
            spawn(root, folder, lock)
        finally:
            os.close(lock)
    except OSError:  # a read-only vault has no watcher
        return False
    return True


def _is_starting(folder: int) -> bool:
    """Whether somebody has held the lock for no longer than a start takes."""
    try:
        lock = index_files.open_in(folder, LOCK, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except OSError:
        return -1 <= time.time() - os.fstat(lock).st_mtime < STARTING_SECONDS
    finally:
        os.close(lock)


def _wait_for_any(places: list[str]) -> None:
    """Wait a little for a socket: ten that wait must not take the time that the watcher needs."""
    before = [_inode(place) for place in places]
    for _ in range(POLLS):
        time.sleep(POLL_SECONDS)
        if [_inode(place) for place in places] != before:
            return


def _inode(place: str) -> int:
    try:
        return os.lstat(place).st_ino
    except OSError:
        return 0


def _is_wanted(root: str) -> bool:
    """Whether hooks may start a watcher. Settings are only parsed where they speak of it.

    Raises SettingsError.
    """
    named = os.environ.get("LESSONS_WATCH_AUTOSTART", "")
    home = locate.home_folder(os.environ)
    settings = f"{root}/{locate.FOLDER}/{locate.SETTINGS}"
    if not named and not any(map(_speaks_of_it, (settings, f"{home}/config.toml"))):
        return True
    from pathlib import Path

    from vault_index import config

    return config.load(Path(settings), os.environ).watch_autostart


def _speaks_of_it(path: str) -> bool:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # no pipe is waited for
    except OSError:
        return False
    try:
        text = os.read(handle, MOST_BYTES)
    except OSError:
        return True
    finally:
        os.close(handle)
    return b"autostart" in text or b"\\" in text  # a name may be written with escapes


def _is_passed_on(name: str) -> bool:
    return name == "CLAUDE_CONFIG_DIR" or not name.startswith(_NOT_PASSED_ON)


def _open_log(folder: int) -> int:
    try:
        if os.stat(LOG, dir_fd=folder, follow_symlinks=False).st_size > LOG_BYTES:
            os.replace(LOG, f"{LOG}.old", src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        pass  # there is none, or opening it says what is wrong
    return index_files.open_in(folder, LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
