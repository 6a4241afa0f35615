"""The server that `lessons serve --background` leaves behind: a process of its own, at most one a user.

~/.lessons/serve/   0700
  lock              held by the server, with its process id; the system frees it however the server ends
  log               what it says
  state.json        the vault that it serves, and the address, once it listens

It asks the watcher, as each client does. After an upgrade it goes on as the version that was installed.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from vault_index import config, files
from vault_index.entrypoints import guard, token
from vault_index.errors import VaultError
from vault_index.hotpath import index_files, start
from vault_index.vault import open_vault
from vault_index.watch.current import stamp_package

if TYPE_CHECKING:
    from vault_index.vault import Vault

FOLDER, STATE = "serve", "state.json"
HOST = "127.0.0.1"
START_SECONDS = 30  # to load what serves
STOP_SECONDS = 10  # for it to end by itself: it waits for what it is answering; then it is killed
LOOK_SECONDS = 2.0  # between two looks whether another version was installed
POLL_SECONDS = 0.05


def begin(vault: Vault, port: int, *, or_free: bool = False) -> tuple[str, bool]:
    """Serve a vault in the background; return the address, and whether that began here.

    With `or_free` a free port does where somebody else has this one. Raises VaultError where another
    vault is served, the port is taken, or the server does not start.
    """
    folder = _folder()
    files.make_folder(folder)
    if not is_running():
        try:
            with guard.listening(HOST, port):  # says here why it cannot
                pass
        except VaultError:
            if address := _at_a_terminal(vault, port):
                return address, False
            if not or_free:
                raise
            port = 0
        (folder / STATE).unlink(missing_ok=True)
    with files.writing(folder):
        handle = index_files.open_folder(str(folder))
        try:
            pid = start.start_once(handle, ["--vault", str(vault.root), "serve", str(port)])
        finally:
            os.close(handle)
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and is_running():
        state = files.read_json(folder / STATE)
        if state and state["root"] != str(vault.root):
            why = f"{state['root']} is served on {state['address']}"
            raise VaultError(why, "end that: lessons serve --stop")
        if state:
            return str(state["address"]), pid is not None
        time.sleep(POLL_SECONDS)
    raise VaultError("the server did not start", f"read {folder / start.LOG}")


def note(vault: Vault, address: str) -> None:
    """Note that this process serves a vault at a terminal."""
    state = {"root": str(vault.root), "address": address, "pid": os.getpid()}
    with suppress(VaultError):  # it serves all the same
        files.make_folder(_folder())
        file = _folder() / f"{address.rpartition(':')[2]}.json"
        files.replace_file(file, json.dumps(state).encode())


def _at_a_terminal(vault: Vault, port: int) -> str:
    """Return the address at which a process of this user serves a vault; "" where none does."""
    state = files.read_json(_folder() / f"{port}.json")
    is_ours = state.get("root") == str(vault.root) and index_files.is_alive(int(state["pid"]))
    return str(state["address"]) if is_ours else ""


def stop() -> str:
    """End the server; return the address that it had, "" where there was none. Raises VaultError."""
    folder = _folder()
    address = str(files.read_json(folder / STATE).get("address", ""))
    for number in (signal.SIGTERM, signal.SIGKILL):
        until = time.monotonic() + STOP_SECONDS
        if is_running():
            with suppress(OSError, ValueError):  # it has just ended
                os.kill(int((folder / start.LOCK).read_text()), number)
        elif number == signal.SIGTERM:
            return ""
        while time.monotonic() < until:
            if not is_running():
                (folder / STATE).unlink(missing_ok=True)
                return address or "nothing yet"
            time.sleep(POLL_SECONDS)
    raise VaultError("the server cannot be ended", f"see {folder / start.LOCK}")


def is_running() -> bool:
    """Whether the server runs or starts: its lock is held."""
    try:
        handle = index_files.open_folder(str(_folder()))
    except OSError:
        return False
    try:
        lock = start.take_lock_in(handle)
    finally:
        os.close(handle)
    if lock is not None:
        os.close(lock)
    return lock is None


def run(words: list[str], say: Callable[[str], None]) -> None:
    """Serve, as `begin` started it: `--vault ROOT serve PORT --lock DESCRIPTOR`. Raises VaultError."""
    from vault_index.entrypoints.web import server

    root, port, lock = words[1], int(words[3]), int(words[5])
    os.set_inheritable(lock, False)
    start.note_pid(lock, os.getpid())
    vault = open_vault(root)
    package, upgraded = stamp_package(), threading.Event()

    def announce(address: str, _code: str) -> None:
        state = {"root": str(vault.root), "address": address}
        files.replace_file(_folder() / STATE, json.dumps(state).encode())
        say(f"serving {vault.root} on {address}")
        words[3] = address.rpartition(":")[2]  # where it goes on after an upgrade

    def look() -> None:
        while stamp_package() == package and _folder().is_dir():
            time.sleep(LOOK_SECONDS)
        upgraded.set()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=look, daemon=True, name="upgrade").start()
    server.serve(vault, HOST, port, token.load_token(vault.config.home), announce, say)
    if upgraded.is_set() and _wait_for_package():
        os.set_inheritable(lock, True)
        os.execv(sys.executable, [sys.executable, "-P", "-m", "vault_index", *words])
    (_folder() / STATE).unlink(missing_ok=True)


def _wait_for_package() -> bool:
    """Wait until an installer is done. Whether the package is there, and the user's folder."""
    before = None
    until = time.monotonic() + START_SECONDS
    while (now := stamp_package()) != before or not now:
        if time.monotonic() > until:
            return False
        before = now
        time.sleep(LOOK_SECONDS)
    return _folder().is_dir()


def _folder() -> Path:
    return config.home_folder() / FOLDER
