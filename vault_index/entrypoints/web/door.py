"""The vault that is served: its questions, as fresh as its clients need them, and no second model.

The watcher answers; it is started if the settings let anybody. It sees what people save by itself. For
what came in here, and after a silence, the next question waits for the index; the others take it as it
is. Waiting each time would have the watcher look through all files for each question of fifty clients.
Where no watcher may run, this process answers, one question at a time, from one vault that stays open
and an index that it brings up to date.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Depends, Request

from vault_index import client, files
from vault_index.entrypoints.web.refusal import Refusal, of_error
from vault_index.errors import VaultError
from vault_index.hotpath import grown, locate
from vault_index.vault import open_vault
from vault_index.watch.current import stamp

if TYPE_CHECKING:
    from vault_index.vault import Vault

QUIET_SECONDS = 2.0  # without a question: the next one waits for the index, and delays nobody
_FOLDERS = re.compile(r"(?<![\w.~/])/(?:[^\s/'\":;,]+/)+")


class Door:
    """Asks the vault for the routes. What goes wrong is a Refusal that names no folder of the machine."""

    def __init__(self, vault: Vault) -> None:
        self.root = vault.root
        self.began = time.monotonic()
        self.turn = asyncio.Lock()  # of requests that write
        self._vault = vault
        self._settings = self._stamp_settings()
        self._opening = threading.Lock()
        self._alone = threading.Lock()  # held by the question that this process answers
        self._writes = 1  # what was saved before this server began counts as one
        self._seen = 0  # of them by a question that waited
        self._asked = 0.0

    def ask(
        self, name: str, values: dict[str, Any], *, status: int = 503, settled: bool = False
    ) -> dict[str, Any]:
        """Answer a question of `api`, or carry out a command.

        Raises Refusal: with `status` where the error does not say which.
        """
        with self.refusing(status):
            vault = self._opened()
            alone = not vault.config.watch_autostart
            writes = self._writes
            stale = self._is_stale() or settled
            question = {"ask": name, "with": values}
            with self._alone if alone else contextlib.nullcontext():
                answer = client.ask(
                    vault, question, as_is=not stale, settled=settled, fetch=False, start=True
                )
            if stale:
                self._seen = max(self._seen, writes)
            return answer

    def change(self, name: str, values: dict[str, Any], changed: Callable[[Any], list[str]]) -> Any:
        """Carry out a command that writes; the disk has the files that `changed` names in its answer.

        Raises Refusal.
        """
        with self.refusing(422):
            try:
                answer = client.ask(self._opened(), {"ask": name, "with": values}, start=True)
                for path in changed(answer):
                    files.make_durable(Path(path), within=self.root)
            finally:
                self._writes += 1
            return answer

    def require_journal(self) -> None:
        """Raise Refusal unless the journal is on."""
        if not grown.is_on():
            raise Refusal(
                404, "the journal is off", "switch it on: lessons install claude --journal"
            )

    def shown(self, text: str) -> str:
        """Return a text in which no folder of this machine is named."""
        own = locate.home_folder(os.environ)
        for folder, name in (
            (str(self.root), "the vault"),
            (os.path.realpath(self.root), "the vault"),
            (own, "~/.lessons"),
            (os.path.realpath(own), "~/.lessons"),
            (str(Path.home()), "~"),
        ):
            if name == "the vault":
                text = text.replace(f"{folder}/", "")
            text = text.replace(folder, name) if len(folder) > 1 else text
        return text

    def shown_error(self, text: str) -> str:
        """Return the text of an error, in which a path outside of the vault is only its last name."""
        return _FOLDERS.sub("", self.shown(text))

    @contextlib.contextmanager
    def refusing(self, status: int) -> Iterator[None]:
        """Turn an error of the vault into a Refusal; `status` where its kind does not say which."""
        try:
            yield
        except VaultError as error:
            raise of_error(error, status, self.shown_error) from None

    def _is_stale(self) -> bool:
        """Whether a question has to wait for the index; note that one was asked."""
        before, self._asked = self._asked, time.monotonic()
        return self._seen < self._writes or self._asked - before > QUIET_SECONDS

    def _opened(self) -> Vault:
        """Return the vault, opened again after a change of its settings. Raises SettingsError."""
        settings = self._stamp_settings()
        if settings != self._settings:
            with self._opening:
                self._vault = open_vault(self.root)
                self._settings = settings
        return self._vault

    def _stamp_settings(self) -> object:
        home = Path(locate.home_folder(os.environ))
        places = self.root / locate.FOLDER / locate.SETTINGS, home / "config.toml"
        return [stamp(place) for place in places]


async def _of_app(request: Request) -> Door:
    door: Door = request.app.state.door
    return door


OpenDoor = Annotated[Door, Depends(_of_app)]
