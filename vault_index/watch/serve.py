"""The watcher's end of the line: takes questions from the socket and gives answers."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import stat
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from vault_index.errors import VaultError, WriteError
from vault_index.watch import line

QUEUE = 256  # connections that wait to be taken: a hundred hooks in a second is no reason to refuse
PATIENCE_SECONDS = 2.0  # for a question to arrive
MOST_AT_ONCE = 128  # connections in work; who comes then waits in the queue

Answer = Callable[[Mapping[str, Any]], Mapping[str, Any]]


class Server:
    """Listens on a vault's socket, mode 0600, and answers each question in a thread of its own."""

    def __init__(self, root: str, answer: Answer) -> None:
        self._answer = answer
        self._free = threading.BoundedSemaphore(MOST_AT_ONCE)
        self._socket, self.place = _listen(root)
        self._inode = Path(self.place).lstat().st_ino

    def start(self) -> None:
        """Begin to take questions; who came before waits."""
        threading.Thread(target=self._accept, daemon=True, name="accept").start()

    def is_reachable(self) -> bool:
        """Tell whether the socket is still the one in its place."""
        try:
            return Path(self.place).lstat().st_ino == self._inode
        except OSError:
            return False

    def close(self) -> None:
        """Stop listening; the socket's name goes, unless another one has it by now."""
        if self.is_reachable():
            with contextlib.suppress(OSError):
                Path(self.place).unlink()
        self._socket.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:  # closed, or no file descriptor left
                if self._socket.fileno() < 0:
                    return
                time.sleep(0.05)
                continue
            self._free.acquire()
            threading.Thread(target=self._one, args=(connection,), daemon=True).start()

    def _one(self, connection: socket.socket) -> None:
        try:
            with connection:
                if line.of_another_user(connection):
                    return
                asked = line.receive(connection, time.monotonic() + PATIENCE_SECONDS)
                if not asked:
                    return  # somebody looked whether there is a watcher
                connection.settimeout(PATIENCE_SECONDS)
                connection.sendall(json.dumps(self._reply(asked)).encode() + b"\n")
        except (OSError, ValueError):
            return  # gone before the answer
        finally:
            self._free.release()

    def _reply(self, asked: bytes) -> dict[str, Any]:
        try:
            question = json.loads(asked)
            if not isinstance(question, dict):
                raise ValueError("not an object")
        except ValueError as error:
            return {"protocol": line.PROTOCOL, "stranger": f"not a question: {error}"}
        try:
            answer = dict(self._answer(question))
        except VaultError as error:
            answer = {"refused": error.message, "hint": error.hint}
        except Exception as error:  # noqa: BLE001  # whoever asked falls back; the watcher lives on
            answer = {"stranger": f"{type(error).__name__}: {error}"}
        return {"protocol": line.PROTOCOL, **answer}


def _listen(root: str) -> tuple[socket.socket, str]:
    """Listen at the first place that works. The caller holds the lock, so what is there is dead."""
    problem: OSError | None = None
    for place in line.places(root):
        listening = socket.socket(socket.AF_UNIX)
        try:
            _make_private(Path(place).parent)
            Path(place).unlink(missing_ok=True)
            before = os.umask(0o177)
            try:
                listening.bind(place)
            finally:
                os.umask(before)
            listening.listen(QUEUE)
            return listening, place
        except OSError as error:
            listening.close()
            problem = error
    raise WriteError(f"no socket can be made for {root}: {problem}", "see its permissions")


def _make_private(folder: Path) -> None:
    """Make the runtime folder, for this user alone; refuse one that somebody else made."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if str(folder) == line.runtime_folder():
        found = folder.lstat()
        if found.st_uid != os.getuid() or not stat.S_ISDIR(found.st_mode) or found.st_mode & 0o077:
            raise PermissionError(f"{folder} is not ours alone")
