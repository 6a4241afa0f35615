"""The vault that is served: its questions, as fresh as its clients need them, and no second model.

The watcher answers; it is started if the settings allow it. After a write here, and after a silence, the
next question waits for the index; the others take it as it is, or the watcher would look through all
files for each question of fifty clients. If no watcher may run, this process answers, one question at a
time.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import is_dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Depends, Request

from vault_index import api, client, files
from vault_index.api import codec
from vault_index.entrypoints.web.refusal import Refusal, from_error
from vault_index.errors import VaultError
from vault_index.hotpath import index_files, spool
from vault_index.store import manifest
from vault_index.vault import open_vault, stamp_settings

if TYPE_CHECKING:
    from vault_index.vault import Vault

TYPED_AT_ONCE = 2  # searches of people who type; a page gives up those that wait
ANSWERS = 4  # questions that models answer at once
QUIET_SECONDS = 2.0  # without a question: the next one waits for the index, and delays nobody
MAX_CACHED = 50  # answers of `ask_cached`
FILES = frozenset({"files", "files_read", "files_modified"})  # keys of lists of paths
_FOLDERS = re.compile(r"(?<![\w.~/])/(?:[^\s/'\":;,]+/)+")


class VaultClient:
    """Asks the vault for the routes. Errors are a Refusal that names no folder of the machine."""

    def __init__(self, vault: Vault) -> None:
        self.root = vault.root
        self.began = time.monotonic()
        self.turn = asyncio.Lock()  # of requests that write
        self.typed = asyncio.Semaphore(TYPED_AT_ONCE)
        self.answers = asyncio.Semaphore(ANSWERS)  # of questions that wait for models
        self.is_ending = False  # the server ends: no model is waited for
        self._vault = vault
        self._settings = stamp_settings(self.root)
        self._opening = threading.Lock()
        self._alone = threading.Lock()  # held by the question that this process answers
        self._writes = 1  # what was saved before this server began counts as one
        self._seen = 0  # of them by a question that waited
        self._asked_at = 0.0
        self._cached: dict[tuple[str, str], tuple[int, Any]] = {}  # when it was written

    def ask(
        self,
        question: api.Question[api.Answer],
        *,
        status: int = 503,
        settled: bool = False,
        at_once: bool = False,
    ) -> api.Answer:
        """Answer a question of `api`, or carry out a command.

        With `at_once` after a silence, too, for pages, which hear of changes: only what came in here is
        waited for. Raises Refusal: with `status` where the error does not say which.
        """
        with self.refusing(status):
            return self._put(self._opened(), question, settled=settled, at_once=at_once)

    def answer(
        self, question: api.Question[Any], on_event: Callable[[Mapping[str, Any]], None]
    ) -> dict[str, Any]:
        """Answer a question with its sources, as the command `ask` does, and with its `notes`.

        Its parts go to `on_event`. Its searches come in as clients' do, so that it holds up nobody
        while a model writes. Raises Refusal, and what `on_event` raises.
        """
        notes: list[str] = []
        options = client.Options(note=notes.append, event=on_event, put=self._put)
        with self.refusing(422):
            answer = client.ask(self._opened(), question, options)
        return {**codec.to_json(answer), "notes": notes}

    def look(self, command: api.Question[api.Answer]) -> tuple[api.Answer, list[str]]:
        """Carry out a command; return its answer, and its notes for people. Raises Refusal."""
        notes: list[str] = []
        with self.refusing(422):
            vault = self._opened()
            with self._turn_of(vault):
                answer = client.ask(vault, command, client.Options(start=True, note=notes.append))
        return answer, [self.shown_error(note) for note in notes]

    def ask_cached(self, question: api.Question[api.Answer], *, status: int = 503) -> api.Answer:
        """Answer as `ask` does at once, and from memory while the index is as it was.

        For questions that read all of 10,000 lessons to draw a page. Raises Refusal.
        """
        written = self.index_written()
        key = question.name, json.dumps(question.values, sort_keys=True)
        cached = self._cached.get(key)
        if cached and cached[0] == written and self._seen >= self._writes and not self.is_alone():
            remembered: api.Answer = cached[1]
            return remembered
        answer = self.ask(question, status=status, at_once=True)
        if len(self._cached) >= MAX_CACHED:
            self._cached.clear()
        self._cached[key] = written, answer
        return answer

    def change(self, command: api.Question[api.Answer]) -> tuple[api.Answer, list[str]]:
        """Do the same with one that writes; the disk has the file at the `path` of its answer."""
        try:
            answer, notes = self.look(command)
            if path := getattr(answer, "path", ""):
                with self.refusing(422):
                    files.make_durable(self.root / path, within=self.root)
        finally:
            self._writes += 1
        return answer, notes

    def is_alone(self) -> bool:
        """Whether no watcher may be started, so that only questions look for what was saved."""
        return not self._vault.config.watch.autostart

    def index_written(self) -> int:
        """Return the time of the index's last write, in nanoseconds; 0 without an index."""
        with contextlib.suppress(VaultError):
            index = manifest.current(self._vault.index_dir)
            return 0 if index is None else manifest.version(index)[1]
        return 0

    def require_journal(self) -> None:
        if not spool.is_on():
            hint = "switch it on: lessons install claude --journal"
            raise Refusal(404, "the journal is off", hint)

    def shown(self, text: str) -> str:
        for folder, name in self._named:
            if name == "the vault":
                text = text.replace(f"{folder}/", "")
            text = text.replace(folder, name) if len(folder) > 1 else text
        return text

    def shown_values(self, value: Any, exclude: Collection[str] = (), key: str = "") -> Any:
        """Return JSON values in which no folder of this machine is named, without the excluded keys.

        `key` is what a value is called: of a file in another place only its name stays.
        """
        value = codec.to_json(value) if is_dataclass(value) else value
        if isinstance(value, Mapping):
            return {
                name: self.shown_values(each, exclude, name)
                for name, each in value.items()
                if name not in exclude
            }
        if isinstance(value, (list, tuple)):
            return [self.shown_values(each, exclude, key) for each in value]
        if not isinstance(value, str):
            return value
        is_elsewhere = key in FILES and value.startswith(("/", "~"))
        return value.rpartition("/")[2] if is_elsewhere else self.shown(value)

    def shown_error(self, text: str) -> str:
        """Return the text of an error, in which a path outside of the vault is only its last name."""
        return _FOLDERS.sub("", self.shown(text))

    @contextlib.contextmanager
    def refusing(self, status: int) -> Iterator[None]:
        """Turn an error of the vault into a Refusal; `status` where its kind does not say which."""
        try:
            yield
        except VaultError as error:
            raise from_error(error, status, self.shown_error) from None

    def _put(
        self,
        vault: Vault,
        question: api.Question[api.Answer],
        *,
        settled: bool = False,
        at_once: bool = False,
        **_: object,
    ) -> api.Answer:
        """Answer a question as fresh as its client needs it. Raises VaultError."""
        writes, before = self._writes, self._asked_at
        stale = settled or self._seen < writes
        if not at_once:
            self._asked_at = time.monotonic()
            stale = stale or self._asked_at - before > QUIET_SECONDS
        with self._turn_of(vault):
            options = client.Options(as_is=not stale, settled=settled, fetch=False, start=True)
            answer = client.ask(vault, question, options)
        if stale:
            self._seen = max(self._seen, writes)
        return answer

    def _turn_of(self, vault: Vault) -> contextlib.AbstractContextManager[object]:
        """Return the lock that is held while this process answers; none where a watcher does."""
        return contextlib.nullcontext() if vault.config.watch.autostart else self._alone

    def _opened(self) -> Vault:
        settings = stamp_settings(self.root)
        if settings != self._settings and not hasattr(self._vault, "uri"):
            with self._opening:
                self._vault = open_vault(self.root)
                self._settings = settings
        return self._vault

    @cached_property
    def _named(self) -> tuple[tuple[str, str], ...]:
        home = index_files.home_folder(os.environ)
        return (
            (str(self.root), "the vault"),
            (os.path.realpath(self.root), "the vault"),
            (home, "~/.lessons"),
            (os.path.realpath(home), "~/.lessons"),
            (str(Path.home()), "~"),
        )


async def _client_in(request: Request) -> VaultClient:
    client: VaultClient = request.app.state.client
    return client


Client = Annotated[VaultClient, Depends(_client_in)]


END_SECONDS = 5.0  # for the models that are stopped when the server ends


async def end(client: VaultClient) -> None:
    """End the streams of a server, and wait until the models of all questions have stopped."""
    client.is_ending = True
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(END_SECONDS):
            for _ in range(ANSWERS):
                await client.answers.acquire()
                await asyncio.sleep(0)  # those that wait for a turn hear of the end, too
