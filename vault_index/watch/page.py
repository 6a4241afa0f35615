"""The page and the HTTP routes in the watcher, for as long as its user wants them served.

The wish is a file beside the watcher's lock: the next watcher, after an upgrade, a kill or a login,
serves again. The server is a door, which this room does not know: `entrypoints.background` brings it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from vault_index import files
from vault_index.errors import VaultError
from vault_index.files import private
from vault_index.hotpath import protocol

FILE = "serve.json"


class Served(Protocol):
    """A server that runs in threads of its own."""

    address: str

    def close(self) -> None:
        """End it, and wait for it a little."""


Open = Callable[[Path, int], Served]  # the root of a vault, and a port; raises VaultError


@dataclass(frozen=True, slots=True)
class Wish:
    """The vault and the port to be served."""

    root: str
    port: int


def wish() -> Wish | None:
    """Return what this user wants served in the background."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        values = json.loads(_file().read_bytes())
        return Wish(str(values["root"]), int(values["port"]))
    return None


def forget() -> Wish | None:
    """Serve nothing from now on; return what was to be served."""
    wanted = wish()
    with files.writing(_file()):
        _file().unlink(missing_ok=True)
    return wanted


def _file() -> Path:
    return Path(protocol.folder()) / FILE


class Page:
    """The page that one watcher serves; `address` is "" while it serves nothing."""

    def __init__(self, open_: Open | None, say: Callable[[str], None]) -> None:
        self._open = open_
        self._say = say
        self._served: Served | None = None
        self._root = ""
        self._changing = threading.Lock()
        self._trouble = ""

    @property
    def address(self) -> str:
        """Return where it serves."""
        served = self._served
        return served.address if served else ""

    def serve(self, root: str, port: int) -> dict[str, Any]:
        """Serve a vault from now on, and after the next start. Raises VaultError."""
        with self._changing:
            served = self._served
            if served and (root != self._root or port not in (0, _port(served.address))):
                raise VaultError(
                    f"{self._root} is served on {served.address}", "end that: lessons serve --stop"
                )
            if served is None:
                self._begin(root, port)
            private.make_folder(_file().parent)
            values = {"root": root, "port": _port(self.address)}
            files.replace_file(_file(), f"{json.dumps(values)}\n".encode())
            return {"address": self.address, "began": served is None}

    def stop(self) -> dict[str, Any]:
        """Serve nothing any more; return the address that was served."""
        address = self.address
        forget()
        self.close()
        return {"address": address}

    def look(self) -> None:
        """Serve what is wanted, if nothing is: after a start, or once its port is free."""
        wanted = None if self._served else wish()
        if wanted is None:
            return
        with self._changing:
            try:
                if self._served is None:
                    self._begin(wanted.root, wanted.port)
                self._trouble = ""
            except VaultError as error:
                if error.message != self._trouble:
                    self._say(f"error: the page is not served: {error.message}")
                self._trouble = error.message

    def close(self) -> None:
        """Stop serving; the wish stays."""
        with self._changing:
            served, self._served = self._served, None
            if served is not None:
                served.close()

    def _begin(self, root: str, port: int) -> None:
        if self._open is None:
            raise VaultError("this watcher serves no page", "end it: lessons watch --stop")
        self._served = self._open(Path(root), port)
        self._root = root
        self._say(f"serving {root} on {self.address}")


def _port(address: str) -> int:
    return int(address.rpartition(":")[2])
