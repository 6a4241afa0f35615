"""The journal in the watcher: what grew is taken in and indexed beside the answers to prompts.

A thread of its own does it with the embedder that is warm, so that a turn is found a moment after its
end. Much at once is left to a process of lower priority.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from vault_index import api
from vault_index.errors import VaultError
from vault_index.hotpath import taking
from vault_index.journal import take
from vault_index.journal.journal import PENDING, Journal
from vault_index.vault import Vault
from vault_index.watch import malloc
from vault_index.watch.growth import Growth

SETTLE_SECONDS = 1.0  # an agent writes the end of a turn after its hook began
TIDY_SECONDS = 30.0  # without a write, before old versions of the index are cleaned away
EXPIRE_SECONDS = 86_400.0  # between two looks for sessions that are kept long enough
JUDGING_SECONDS = 2.0  # at a time, for what agents did with their lessons: prompts come first
PATIENCE_SECONDS = 2.0  # that a question waits for what just grew
MANY_FILES = 12  # transcripts that are left to another process
MANY_BYTES = 8 * 1024 * 1024  # of transcripts, that are


class JournalWatch:
    """Takes in what grew, between `start` and the end of the process, and answers for the journal.

    `vault` returns the vault as it is opened now: its settings and its embedder are the journal's.
    """

    def __init__(self, vault: Callable[[], Vault], say: Callable[[str], None]) -> None:
        self.trouble = ""  # why the last transcripts could not be taken in
        self._vault = vault
        self._say = say
        self._growth = Growth()
        self._opened: tuple[Vault, Journal] | None = None
        self._sizes: dict[Path, int] = {}  # of what was taken in last
        self._changed = threading.Condition()
        self._called = 0
        self._done = 0
        self._settling = False
        self._tidy = True
        self._unjudged = True  # sessions went on since outcomes were looked at
        self._expired = -EXPIRE_SECONDS  # when sessions that are too old were looked for

    def start(self) -> None:
        """Begin to take in what is noted from now on, and what was noted before."""
        threading.Thread(target=self._work, daemon=True, name="journal").start()
        if take.waiting(self.journal):
            self.call()

    @property
    def journal(self) -> Journal:
        """The journal with the settings as they are now."""
        vault = self._vault()
        if self._opened is None or self._opened[0] is not vault:
            embedder = None
            with contextlib.suppress(VaultError):  # a server that embeds may be away
                embedder = vault.embedder
            self._opened = vault, Journal(vault.config, embedder)
        return self._opened[1]

    @property
    def is_busy(self) -> bool:
        """Whether something is being taken in, or is about to be."""
        return self._done < self._called

    def look(self) -> bool:
        """Whether transcripts grew since the last look of which no hook said so; they are noted."""
        grown = [path for path in self._growth.look(self.journal) if self._has_news(path)]
        try:
            if grown:
                take.note(self.journal, grown)
        except (VaultError, OSError) as error:  # a full disk: the next look begins again
            self._growth = Growth()
            self._complain(str(error))
            return False
        return bool(grown)

    def call(self) -> None:
        """Have what is noted taken in now."""
        with self._changed:
            self._called += 1
            self._changed.notify_all()

    def answer(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Answer a question about the journal; a `fresh` one waits for what just grew."""
        if question.get("fresh") and take.waiting(self.journal):
            self.call()
            until = time.monotonic() + PATIENCE_SECONDS
            with self._changed:
                self._changed.wait_for(lambda: not self.is_busy, until - time.monotonic())
        return api.answer(self.journal, question)

    @property
    def _reading(self) -> Any:
        """The module that reads transcripts, loaded here: the first prompt does not wait for it."""
        return importlib.import_module("vault_index.journal.take")

    def _work(self) -> None:
        while True:
            seconds = SETTLE_SECONDS if self._settling else None if self._tidy else TIDY_SECONDS
            with self._changed:
                self._changed.wait_for(lambda: self.is_busy, seconds)
                called = self._called
            try:
                self._do(called > self._done)
                self.trouble = ""
            except Exception as error:  # noqa: BLE001  # the next may go well
                self._settling, self._tidy = False, True
                self._complain(f"{type(error).__name__}: {error}")
            with self._changed:
                self._done = called
                self._changed.notify_all()

    def _do(self, called: bool) -> None:
        """Take in what grew; where nothing does any more, clean up."""
        if os.path.lexists(self.journal.folder / PENDING):
            importlib.import_module("vault_index.journal.forget").finish(self.journal)
        if called or self._settling:
            self._settling = self._take_in()
            self._unjudged = True
            self._tidy = self._tidy and not self._settling
            if not self._settling and take.ended(self.journal):
                taking.start_process(str(self.journal.folder))  # learns from them, or lets them go
            malloc.trim()
        else:
            self._tidy = self._reading.index.tidy(self.journal)
            if self._unjudged:  # the record of injections is short: what it says is kept
                outcome = importlib.import_module("vault_index.recall.outcome")
                self._unjudged = bool(outcome.of(self._vault(), JUDGING_SECONDS).waiting)
            if time.monotonic() - self._expired > EXPIRE_SECONDS:
                self._expire()

    def _expire(self) -> None:
        """Put away the sessions and proposals that are kept long enough."""
        self._expired = time.monotonic()
        gone = importlib.import_module("vault_index.journal.forget").expire(self.journal)
        review = importlib.import_module("vault_index.proposals.review")
        for went in filter(None, (gone.went(self.journal), review.expire(self._vault()))):
            self._say(f"journal: {went}")

    def _take_in(self) -> bool:
        """Take in what is noted, and what grew since it was. Whether it may grow on."""
        journal = self.journal
        later = [path for path in self._sizes if self._has_news(path)]
        self._sizes = {}
        if later:
            take.note(journal, later)
        transcripts = [note.transcript for note in take.waiting(journal)]
        if not transcripts:
            return False
        sizes = {path: _size(path) for path in transcripts}
        if len(sizes) > MANY_FILES or sum(sizes.values()) > MANY_BYTES:
            taking.start_process(str(journal.folder))
            return False
        if self._reading.catch_up(journal, self._report):
            self._sizes = sizes
        return bool(self._sizes)

    def _has_news(self, path: Path) -> bool:
        return self._sizes.get(path) != _size(path)

    def _complain(self, message: str) -> None:
        if message != self.trouble:
            self._report(f"error: {message}")
        self.trouble = message

    def _report(self, message: str) -> None:
        take.complain(self.journal, message)
        self._say(f"journal: {message}")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1
