"""The page and the HTTP routes in the watcher, for as long as its user wants them served.

The wishes are a file beside the watcher's lock: the next watcher, after an upgrade, a kill or a login,
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
    """A vault and the port on which it is to be served."""

    root: str
    port: int


def wishes() -> list[Wish]:
    """Return what this user wants served in the background."""
    with suppress(ValueError, KeyError, TypeError):
        values = files.read_json(_file())
        each = values.get("served", [values])  # 0.8.0 served a single vault
        return [Wish(str(wanted["root"]), int(wanted["port"])) for wanted in each]
    return []


def forget() -> list[Wish]:
    """Serve nothing from now on; return what was to be served."""
    wanted = wishes()
    with files.writing(_file()):
        _file().unlink(missing_ok=True)
    return wanted


def _file() -> Path:
    return Path(protocol.folder()) / FILE


class Page:
    """The pages that one watcher serves, each vault on a port of its own."""

    def __init__(self, open_: Open | None, say: Callable[[str], None]) -> None:
        self._open = open_
        self._say = say
        self._served: dict[str, Served] = {}
        self._changing = threading.Lock()
        self._troubles: dict[str, str] = {}

    def addresses(self) -> dict[str, str]:
        """Return where it serves which vault, by its root."""
        return {root: served.address for root, served in tuple(self._served.items())}

    def serve(self, root: str, port: int, *, another: bool = False) -> dict[str, Any]:
        """Serve a vault from now on, and after the next start. Raises VaultError.

        Port 0 is the one that it is served on, else a free one; with `another` so is a port that is busy.
        """
        with self._changing:
            address = self.addresses().get(root, "")
            if address and not another and port not in (0, _port(address)):
                raise VaultError(f"{root} is served on {address}", "end that: lessons serve --stop")
            if not address:
                self._begin(root, port, another=another)
            private.make_folder(_file().parent)
            wanted = {each.root: each.port for each in wishes()}
            wanted |= {each: _port(at) for each, at in self.addresses().items()}
            values = [{"root": each, "port": at} for each, at in wanted.items()]
            files.replace_file(_file(), f"{json.dumps({'served': values})}\n".encode())
            return {"address": self.addresses()[root], "began": not address}

    def stop(self) -> dict[str, Any]:
        """Serve nothing any more; return the addresses that were served."""
        addresses = ", ".join(self.addresses().values())
        forget()
        self.close()
        return {"address": addresses}

    def look(self) -> None:
        """Serve what is wanted and is not served: after a start, or once its port is free."""
        for wanted in wishes():
            if wanted.root in self._served:
                continue
            with self._changing:
                try:
                    if wanted.root not in self._served:
                        self._begin(wanted.root, wanted.port)
                    self._troubles.pop(wanted.root, None)
                except (VaultError, OSError) as error:
                    message = error.message if isinstance(error, VaultError) else str(error)
                    if message != self._troubles.get(wanted.root):
                        self._say(f"error: the page is not served: {message}")
                    self._troubles[wanted.root] = message

    def close(self) -> None:
        """Stop serving; the wishes stay."""
        with self._changing:
            for root in tuple(self._served):
                self._served.pop(root).close()

    def _begin(self, root: str, port: int, *, another: bool = False) -> None:
        if self._open is None:
            raise VaultError("this watcher serves no page", "end it: lessons watch --stop")
        try:
            self._served[root] = self._open(Path(root), port)
        except VaultError:
            if not another:
                raise
            self._served[root] = self._open(Path(root), 0)
        self._say(f"serving {root} on {self._served[root].address}")


def _port(address: str) -> int:
    return int(address.rpartition(":")[2])
