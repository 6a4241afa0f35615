"""Start the watcher from a hook, and wait for it while it starts.

A starting watcher holds a lock that was written to a moment ago, and does not listen yet. A hook then
waits for it rather than load the same model and tables: on two busy cores both would be late. On an
idle machine the first prompt takes a tenth longer than without a watcher. Standard library only.
"""

from __future__ import annotations

import os
import sys
import time

from vault_index.hotpath import clock, index_files, log, protocol, spool

TYPE_CHECKING = False  # typing takes 3 ms to load
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


LOCK, LOG = "lock", "log"  # in the watcher's folder, and in the spool
VAULT_LOCK = "watch.lock"  # in a `.vault_index`: one process watches a vault
RESTART_SECONDS = 3  # a watcher that dies at once is not started with each prompt
STARTING_SECONDS = 15  # a watcher that does not listen by then is hung; no hook waits for it
POLL_SECONDS = 0.02
AFTER = "--after"  # of the watcher: the process that it waits for
POLLS = 5  # for the socket, between two checks that the watcher still runs

# variables that an agent or git sets for its own children only
_NOT_PASSED_ON = ("CLAUDE", "GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE", "GIT_PREFIX")


def ask(
    root: str, question: Mapping[str, Any], until: float, autostart: Callable[[str], bool]
) -> dict[str, Any] | None:
    """Start the watcher unless one is starting, wait until it listens, and return its answer.

    None if no watcher will answer: hooks may not start one, it died, it takes too long, or the index
    folder is not ours yet. `until` is a time of the monotonic clock. `autostart` reads the setting from
    a vault's settings file. Raises protocol.NoAnswer.
    """
    path = f"{root}/.vault_index"
    try:
        index = index_files.open_folder(path)
        has_index = index_files.has_index(index)
        os.close(index)
        if not index_files.is_ours(path, index_files.home_folder(os.environ)):
            return None
        folder = index_files.open_or_make(protocol.folder())
    except OSError:
        return None
    try:
        if not _is_starting(folder) and not _start(root, folder, autostart, has_index):
            return None
        if not has_index:  # there is nothing to ask yet: the files answer
            return None
        places = protocol.places()
        while time.monotonic() < until and _is_starting(folder):
            try:
                return protocol.ask(root, question, until - time.monotonic())
            except protocol.NotOpen:
                return None
            except protocol.NoWatcher:
                _wait_for_any(places)
        return None
    finally:
        os.close(folder)


def watch_words(root: str, *, has_index: bool) -> list[str]:
    """Return the words that start the watcher of a vault.

    Without an index the hook answers from the files, and the watcher waits for its end: on two busy
    cores both at once would be late.
    """
    after = [] if has_index else [AFTER, str(os.getpid())]
    return ["--vault", root, "watch", *after]


def take_lock_in(folder: int, name: str = LOCK) -> int | None:
    """Take a process's lock in an open folder and return its descriptor; None if it is held.

    A process that only looks holds it for an instant too: hence the second try. Raises OSError.
    """
    lock = index_files.open_in(folder, name, os.O_RDWR | os.O_CREAT)
    for pause in (0.002, 0.0):
        if index_files.try_lock(lock):
            return lock
        time.sleep(pause)
    os.close(lock)
    return None


def is_recent(handle: int, seconds: float) -> bool:
    """Whether an open file is not empty and was written in the last `seconds`."""
    last = os.fstat(handle)
    return bool(last.st_size) and clock.is_near(last.st_mtime, seconds)


def start_once(folder: int, words: list[str], pause: float = 0.0) -> int | None:
    """Start `lessons` with these words, and the lock of an open folder, which no two can have.

    Return its process id; 0 where the last start was less than `pause` seconds ago; None while another
    process has the lock. The system frees the lock however the process ends. Raises OSError.
    """
    lock = take_lock_in(folder)
    if lock is None:
        return None
    try:
        if is_recent(lock, pause):
            return 0
        output = log.open_for_appending(folder, LOG)
        os.set_inheritable(lock, True)
        try:
            pid = spawn([*words, "--lock", str(lock)], output, lock)
        finally:
            os.set_inheritable(lock, False)
            os.close(output)
        note_pid(lock, pid)
        return pid
    finally:
        os.close(lock)


def spawn(words: list[str], output: int, lock: int = -1) -> int:
    """Start `lessons` with these words in a session of its own, and return its process id.

    It prints to the open file `output`, and gets the `lock`, but no pipe of our caller, which may wait
    for its end. An agent that ends ends its own processes. Raises OSError.
    """
    for file in map(int, os.listdir("/dev/fd")):
        if file > 2 and file != lock:
            try:
                os.set_inheritable(file, False)
            except OSError:
                pass  # the folder that was listed
    command = [sys.executable, "-P", "-m", "vault_index", *words]
    environ = {
        name: value
        for name, value in os.environ.items()
        if name == "CLAUDE_CONFIG_DIR" or not name.startswith(_NOT_PASSED_ON)
    }
    streams = (
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, output, 1),
        (os.POSIX_SPAWN_DUP2, output, 2),
    )
    try:
        return os.posix_spawn(command[0], command, environ, file_actions=streams, setsid=True)
    except NotImplementedError:  # no `setsid` here: what is started calls it
        return os.posix_spawn(command[0], command, environ, file_actions=streams)


def note_pid(lock: int, pid: int) -> None:
    """Write the holder's process id into the lock file, for `stop`; its mtime is the start."""
    os.ftruncate(lock, 0)
    os.pwrite(lock, str(pid).encode(), 0)


def _start(root: str, folder: int, autostart: Callable[[str], bool], has_index: bool) -> bool:
    """Start a watcher if hooks may. Whether one is starting now. Raises SettingsError."""
    settings = f"{root}/{index_files.FOLDER}/{index_files.SETTINGS}"
    of_user = f"{index_files.home_folder(os.environ)}/config.toml"
    # settings are only parsed where they mention it
    is_named = os.environ.get("LESSONS_WATCH_AUTOSTART", "")
    if (is_named or any(map(_mentions_it, (settings, of_user)))) and not autostart(settings):
        return False
    try:
        pid = start_once(folder, watch_words(root, has_index=has_index), RESTART_SECONDS)
    except OSError:  # a read-only vault has no watcher
        return False
    return _is_starting(folder) if pid is None else bool(pid)  # None: another hook was quicker


def _is_starting(folder: int) -> bool:
    """Whether a process has held the lock for no longer than a start takes."""
    try:
        lock = index_files.open_in(folder, LOCK, os.O_RDONLY)
    except OSError:
        return False
    try:
        is_free = index_files.try_lock(lock, shared=True)
        return not is_free and clock.is_near(os.fstat(lock).st_mtime, STARTING_SECONDS)
    finally:
        os.close(lock)


def _wait_for_any(paths: list[str]) -> None:
    """Wait a little for a socket: ten waiting hooks must not use the processor the watcher needs."""
    before = [_inode(path) for path in paths]
    for _ in range(POLLS):
        time.sleep(POLL_SECONDS)
        if [_inode(path) for path in paths] != before:
            return


def _inode(path: str) -> int:
    try:
        return os.lstat(path).st_ino
    except OSError:
        return 0


def _mentions_it(path: str) -> bool:
    try:
        text = index_files.read(path, index_files.MAX_SETTINGS_BYTES)
    except FileNotFoundError:
        return False
    except OSError:  # a link: who parses the settings follows it
        return True
    return b"autostart" in text or b"\\" in text  # a name may be written with escapes


COMMAND = "journal-take"


def start_capture(journal: str) -> bool:
    """Start a capture of grown transcripts, unless one runs; return whether it did. Raises OSError."""
    folder = index_files.open_or_make(f"{journal}/{spool.FOLDER}")
    try:
        return bool(start_once(folder, [COMMAND]))
    finally:
        os.close(folder)
