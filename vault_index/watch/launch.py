"""The watcher as commands see it: whether it runs, start it, stop it. A file lock allows one a user.

How it is started is in `hotpath.start`, which the hook can afford to load. A second lock, in the vault,
allows one process to watch a vault that several users may write to.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from vault_index import files
from vault_index.errors import BusyError, VaultError, WriteError
from vault_index.hotpath import protocol, start
from vault_index.hotpath.start import LOCK, LOG, VAULT_LOCK
from vault_index.store import ownership
from vault_index.vault import Vault, open_vault

__all__ = ["LOCK", "LOG", "VAULT_LOCK"]

START_SECONDS = 30  # to load the model and the tables: one on a quick machine
STOP_SECONDS = 5  # for a watcher to end by itself; then it is killed
LISTEN_SECONDS = 15  # for it to listen; one that does not by then is hung
REPAIR_SECONDS = 30  # to build a first or a damaged index of a thousand lessons
POLL_SECONDS = 0.1
OPEN_SECONDS = 1  # for a watcher that runs to open another vault, or to hear that it ends


def folder() -> Path:
    """Return the watcher's folder, which need not exist."""
    return Path(protocol.folder())


def take_lock() -> int | None:
    """Take the lock of the user's watcher and return its descriptor; None if it is held.

    Raises WriteError.
    """
    with _opened() as handle:
        return start.take_lock_in(handle)


def open_in_background(vault: Vault, *, after_caller: bool = False) -> bool:
    """Have the watcher open a vault, started if need be. Whether a start or the opening began here.

    With `after_caller` a watcher that starts waits until this process has ended. Raises WriteError where
    no lock can be taken.
    """
    with files.writing(vault.index_dir):
        ownership.claim(vault.index_dir)
    with _opened() as handle:
        words = start.watch_words(str(vault.root), has_index=not after_caller)
        pid = start.start_once(handle, words, start.RESTART_SECONDS)
    if pid is not None:
        return bool(pid)
    with contextlib.suppress(protocol.NoWatcher, protocol.NoAnswer):
        return bool(protocol.ask(str(vault.root), {"ask": "open"}, OPEN_SECONDS)["opened"])
    return False


def open_and_wait(vault: Vault) -> tuple[dict[str, Any], bool]:
    """Have the watcher open a vault; return its account of it, and whether that began here.

    Raises VaultError where it does not start.
    """
    began = time.monotonic()
    started = False
    while time.monotonic() - began < START_SECONDS:
        started = open_in_background(vault) or started
        state = status(vault.root)
        if state is not None:
            return state, started
        time.sleep(POLL_SECONDS)
    raise VaultError(f"the watcher of {vault.root} did not start", f"read {folder() / LOG}")


def ask_started(root: str, question: Mapping[str, Any]) -> dict[str, Any] | None:
    """Ask until the watcher answers, and start one if need be; None where no watcher will answer.

    `root` is "" for the journal, which starts no watcher. Raises BusyError if the answer takes too long.
    """
    vault = open_vault(root) if root else None
    began, was_opened = time.monotonic(), False
    while time.monotonic() - began < REPAIR_SECONDS:
        try:
            return protocol.ask_alive(root, question)
        except protocol.NoWatcher as error:
            refuses = was_opened and isinstance(error, protocol.NotOpen)
            if vault is None or refuses or not _opens(vault):
                return None
            if time.monotonic() - began > LISTEN_SECONDS:
                raise _busy() from None
            was_opened = True
        except (protocol.Gone, protocol.DeclinedForNow):
            if (
                vault is None or not vault.files()[0]
            ):  # the caller makes one of no lessons as quickly
                return None
        except protocol.Declined:
            return None
        except protocol.NoAnswer:
            raise _busy() from None
        time.sleep(POLL_SECONDS)
    raise BusyError("the watcher still builds the index", "ask again in a minute")


def _opens(vault: Vault) -> bool:
    """Whether a watcher runs or starts, for settings that let anybody start one."""
    with contextlib.suppress(WriteError):  # a read-only vault has no watcher
        if vault.config.watch.autostart:
            open_in_background(vault)
            return is_running()
    return False


def _busy() -> BusyError:
    return BusyError(
        "the watcher does not answer",
        "ask again; if it stays so, end it with `lessons watch --stop`",
    )


@contextlib.contextmanager
def _opened() -> Iterator[int]:
    with files.writing(folder()):
        folder().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with ownership.opened(folder(), make=True) as handle:
            yield handle


def status(root: Path) -> dict[str, Any] | None:
    """Return the watcher's own account of a vault; None where no watcher has it open.

    Raises VaultError if it does not answer.
    """
    try:
        return protocol.ask(str(root), {"ask": "status"}, timeout=STOP_SECONDS)
    except protocol.NoWatcher:
        return None
    except protocol.NoAnswer as error:
        raise VaultError(
            f"the watcher does not answer: {error}", "end it with `lessons watch --stop`"
        ) from None


def stop() -> bool:
    """End the watcher: ask it, then send signals. Whether there was one. Raises VaultError."""
    if not is_running():
        return False
    try:
        protocol.ask("", {"ask": "stop"}, OPEN_SECONDS)
        first = None
    except (protocol.NoWatcher, protocol.NoAnswer):
        first = signal.SIGTERM
    lock = folder() / LOCK
    for number in (first, signal.SIGKILL):
        if number is not None:
            with contextlib.suppress(OSError, ValueError):  # the file names no process
                pid = int(ownership.read_text(lock))
                if is_running():
                    os.kill(pid, number)
        until = time.monotonic() + STOP_SECONDS
        while time.monotonic() < until:
            if not is_running():
                return True
            time.sleep(0.02)
    raise VaultError(f"the watcher that holds {lock} cannot be ended", f"see {lock.with_name(LOG)}")


def is_running() -> bool:
    """Whether the lock is held: a watcher runs, starts or ends."""
    if not ownership.is_folder(folder()):
        return False
    descriptor = take_lock()
    if descriptor is not None:
        os.close(descriptor)
    return descriptor is None


def take_vault(vault: Vault) -> int:
    """Take the lock of a vault and return its descriptor. Raises VaultError."""
    index = vault.index_dir
    with files.writing(index):
        ownership.claim(index)
        with ownership.opened(index) as handle:
            lock = start.take_lock_in(handle, VAULT_LOCK)
        if lock is None:
            raise VaultError(
                f"another process watches {vault.root}", f"see the process in {index / VAULT_LOCK}"
            )
        start.note_pid(lock, os.getpid())
        return lock
