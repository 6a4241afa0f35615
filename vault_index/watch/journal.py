"""The journal in the watcher: it takes in grown transcripts and indexes them while it answers prompts.

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

from vault_index import api, config, files, native, state
from vault_index.embed import download
from vault_index.errors import IndexStateError, VaultError
from vault_index.hotpath import index_files, start
from vault_index.journal import backlog, projects
from vault_index.journal.journal import PENDING, Journal
from vault_index.transcripts import reading
from vault_index.watch.current import SharedEmbedder

SETTLE_SECONDS = 1.0  # an agent writes the end of a turn after its hook began
TIDY_SECONDS = 30.0  # without a write, before old versions of the index are cleaned away
EXPIRE_SECONDS = 86_400.0  # between two looks for sessions that are kept long enough
QUIET_SECONDS = 5.0  # after a transcript was last seen to grow: the turn may have ended
GROWING_SECONDS = 60.0  # while it grows on
MAX_WAITING = 64  # questions: more are declined, and vaults are answered
PATIENCE_SECONDS = 2.0  # that a question waits for what just grew
MANY_FILES = 12  # transcripts that are left to another process
MANY_BYTES = 8 * 1024 * 1024  # of transcripts, that are
SCAN_SECONDS = 10.0  # between two looks at all transcripts: hundreds of files
SCAN_SHARE = 0.01  # at most this share of the time goes into looking
FIRST_SECONDS = 2 * 86_400  # what changed since then may have grown before this process began


class Growth:
    """Remembers the sizes of transcripts from look to look, where anything is recorded.

    Nobody says that they grew where an agent was killed.
    """

    def __init__(self) -> None:
        self._stamps: dict[Path, tuple[int, int]] | None = None
        self._next = 0.0

    def look(self, journal: Journal) -> list[Path]:
        """Return the transcripts that changed since the last look, at first within two days."""
        began = time.monotonic()
        if began < self._next:
            return []
        grown: list[Path] = []
        if projects.recorded_folders(journal):
            now = {file.path: (file.size, file.mtime) for file in reading.transcripts()}
            if self._stamps is None:
                oldest = 1e9 * (time.time() - FIRST_SECONDS)
                grown = [path for path, (_, mtime) in now.items() if mtime > oldest]
            else:
                grown = [path for path, stamp in now.items() if self._stamps.get(path) != stamp]
            self._stamps = now
        ended = time.monotonic()
        self._next = ended + max(SCAN_SECONDS, (ended - began) / SCAN_SHARE)
        return grown


class JournalWatch:
    """Takes in grown transcripts until the end of the process, and answers for the journal."""

    questions = "grown", "journal."  # how their names begin

    def __init__(self, embedder: SharedEmbedder, say: Callable[[str], None]) -> None:
        self.trouble = ""  # why the last transcripts could not be taken in
        self._embedder = embedder
        self._say = say
        self._growth = Growth()
        self._settings = Path(index_files.home_folder(os.environ)) / "config.toml"
        self._opened: tuple[object, Journal] | None = None
        self._grew: tuple[float, float] | None = None  # when growth was first and last seen
        self._slots = threading.BoundedSemaphore(MAX_WAITING)
        self._sizes: dict[Path, int] = {}  # of what was taken in last
        self._changed = threading.Condition()
        self._called = 0
        self._finished = 0
        self._settling = False
        self._tidy = True
        self._making = threading.Thread()  # of vectors, by a server
        self._expired = -EXPIRE_SECONDS  # when sessions that are too old were looked for

    def start(self) -> None:
        threading.Thread(target=self._work, daemon=True, name="journal").start()
        with contextlib.suppress(VaultError):  # broken settings: each question says so
            if backlog.waiting(self.journal):
                self.call()

    @property
    def journal(self) -> Journal:
        """The journal with the user's settings as they are now. Raises SettingsError."""
        settings = files.stamp(self._settings), download.is_ready(self._settings.parent)
        if self._opened is None or self._opened[0] != settings:
            self._opened = settings, self._embedder.lend(Journal(config.load()))
        return self._opened[1]

    @property
    def is_busy(self) -> bool:
        return self._finished < self._called

    def look(self) -> None:
        """Note transcripts that grew without a hook's word; take them in when they are quiet."""
        now = time.monotonic()
        try:
            grown = [path for path in self._growth.look(self.journal) if self._has_news(path)]
            if grown:
                backlog.add(self.journal, grown)
                self._grew = (self._grew or (now, now))[0], now
        except (VaultError, OSError) as error:  # a full disk: the next look begins again
            self._growth = Growth()
            self._complain(str(error))
        if self._grew is not None and is_due(*self._grew, now):
            self._grew = None
            self.call()

    def call(self) -> None:
        with self._changed:
            self._called += 1
            self._changed.notify_all()

    def answer(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Answer a question about the journal; the caller builds an index that is damaged again.

        Raises VaultError.
        """
        if question["ask"] == "grown":
            self.call()
            return {}
        if not self._slots.acquire(blocking=False):
            return {"declined": f"{MAX_WAITING} questions about the journal wait already"}
        try:
            if question.get("fresh") and backlog.waiting(self.journal):
                self.call()
                with self._changed:  # for what just grew
                    self._changed.wait_for(lambda: not self.is_busy, PATIENCE_SECONDS)
            notes = self.journal.config.warnings()
            return {"notes": notes, **api.answer_on_wire(self.journal, question)}
        except IndexStateError as error:
            return {"declined": error.message}
        finally:
            self._slots.release()

    @property
    def _reading(self) -> Any:
        """The module that reads transcripts, loaded here: the first prompt does not wait for it."""
        return importlib.import_module("vault_index.journal.waiting")

    def _work(self) -> None:
        while True:
            seconds = SETTLE_SECONDS if self._settling else None if self._tidy else TIDY_SECONDS
            with self._changed:
                self._changed.wait_for(lambda: self.is_busy, seconds)
                called = self._called
            try:
                self._do(called > self._finished)
                self.trouble = ""
            except Exception as error:  # noqa: BLE001  # the next may go well
                self._settling, self._tidy = False, True
                self._complain(f"{type(error).__name__}: {error}")
            with self._changed:
                self._finished = called
                self._changed.notify_all()

    def _do(self, called: bool) -> None:
        """Take in transcripts that grew; where none does any more, clean up."""
        if os.path.lexists(self.journal.folder / PENDING):
            importlib.import_module("vault_index.journal.forget").finish(self.journal)
        if called or self._settling:
            self._settling = self._take_in()
            self._tidy = self._tidy and not self._settling
            if not self._settling and backlog.ended(self.journal):
                start.start_capture(str(self.journal.folder))  # learns from them, or lets them go
            native.trim_memory()
        else:
            self._tidy = self._reading.index.tidy(self.journal) and not self._make_vectors()
            if time.monotonic() - self._expired > EXPIRE_SECONDS:
                self._expired = time.monotonic()
                forgotten = importlib.import_module("vault_index.journal.forget").expire(
                    self.journal
                )
                if went := forgotten.went(self.journal):
                    self._say(f"journal: {went}")

    def _take_in(self) -> bool:
        """Capture the noted transcripts. Return whether more may come."""
        journal = self.journal
        later = [path for path in self._sizes if self._has_news(path)]
        self._sizes = {}
        if later:
            backlog.add(journal, later)
        transcripts = [note.transcript for note in backlog.waiting(journal)]
        if not transcripts:
            return False
        sizes = {path: _size(path) for path in transcripts}
        if len(sizes) > MANY_FILES or sum(sizes.values()) > MANY_BYTES:
            start.start_capture(str(journal.folder))
            return False
        if self._reading.catch_up(journal, self._report):
            self._sizes = sizes
            self._make_vectors()
        return bool(self._sizes)

    def _make_vectors(self) -> bool:
        """Have the vectors made that sessions lack, by a process, or by a server; whether some do."""
        journal, index = self.journal, self._reading.index
        lacks: bool = index.lacks_vectors(journal)
        if lacks and journal.config.is_built_in:
            start.start_capture(str(journal.folder))
        elif lacks and not self._making.is_alive():  # a server may hang
            self._making = threading.Thread(target=self._complete, daemon=True)
            self._making.start()
        return lacks

    def _complete(self) -> None:
        try:
            self._reading.index.complete(self.journal)
        except VaultError as error:
            self._complain(error.message)
        finally:
            state.close()

    def _has_news(self, path: Path) -> bool:
        return self._sizes.get(path) != _size(path)

    def _complain(self, message: str) -> None:
        if message != self.trouble:
            self._report(f"error: {message}")
        self.trouble = message

    def _report(self, message: str) -> None:
        with contextlib.suppress(VaultError):
            backlog.complain(self.journal, message)
        self._say(f"journal: {message}")


def is_due(first: float, last: float, now: float) -> bool:
    """Whether transcripts that were first and last seen to grow at these times are taken in now."""
    return now >= min(last + QUIET_SECONDS, first + GROWING_SECONDS)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1
