"""One vault in the watcher: it reindexes on save and keeps everything that a search needs loaded.

A loop in a thread: gather what happened, ask `schedule` what is due, do it. Questions are
answered beside it (`CurrentVault`). Small changes are indexed here. Many at once, a rebuild and measuring
an embedder are left to a `lessons index` of lower priority: the embedder's use of all processors and
LanceDB's memory then belong to another process than the one that answers.
"""

from __future__ import annotations

import contextlib
import gc
import os
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from vault_index import features, files, git, native, state
from vault_index.errors import IndexStateError, VaultError
from vault_index.hotpath import index_files
from vault_index.index import reconcile
from vault_index.retrieval import floor
from vault_index.store import completing, ownership
from vault_index.store.completing import Completed
from vault_index.store.sync import Stats
from vault_index.vault import Vault, open_vault
from vault_index.watch import background_index, launch, schedule
from vault_index.watch.background_index import Job
from vault_index.watch.current import (
    CurrentVault,
    Progress,
    SharedEmbedder,
    keep_loaded,
    load_tables,
    warm_up,
)
from vault_index.watch.events import FileEvents
from vault_index.watch.schedule import Due, Outcome, Passed, Task

MAX_WAITING = 128  # questions to one vault: more are declined, and other vaults are answered
OPEN_SECONDS = 8.0  # that a question waits while its vault is opened; the command waits for ten
_OPTIONS = {  # of `lessons index`, in a process of its own
    Task.BACKGROUND_INDEX: (),
    Task.REBUILD: ("--rebuild",),
}
SERVER_SECONDS = 2.0  # that a pass waits for a server to embed what it wrote
REOPEN_SECONDS = 3.0  # a vault that cannot be opened is not tried again with each prompt


class VaultWatch:
    """A vault that is open from `start` until `end`, or until it has no reason to go on.

    `wanted` is whether a person asked for it, whatever its settings say of hooks. `ready` is set once
    it answers or cannot be opened: then `failure` is why.
    """

    def __init__(
        self, root: Path, say: Callable[[str], None], embedder: SharedEmbedder, *, wanted: bool
    ) -> None:
        self.root = root
        self.wanted = wanted
        self.ready = threading.Event()
        self.ended = threading.Event()
        self.failure = ""
        self.is_unwanted = False  # its settings want no watcher, and no person asked for one
        self._say_line = say
        self._embedder = embedder
        self._waiting = threading.BoundedSemaphore(MAX_WAITING)
        self._index: Job | None = None
        self._fetch: Job | None = None
        self._reflog: Path | None = None
        self.events = FileEvents(root / index_files.FOLDER, self._say)
        self._progress = Progress(self._say, self.events)
        self._questions = 0  # questions at the last look
        self._tried_to_measure = ""  # the embedder whose floors are measured, or could not be
        self._failed_at = 0.0
        self._is_warm = False  # the model and the tables are loaded
        self._has_index = False
        self._is_late = False  # the server that embeds
        self._unbuilt = False  # it answers now, and the index has no room for vectors
        self._stop = ""
        self._thread = threading.Thread(target=self._run, daemon=True, name=f"vault {root.name}")

    def start(self) -> None:
        self._thread.start()

    def end(self, reason: str) -> None:
        self._stop = self._stop or reason
        self.events.wake()

    @property
    def is_ending(self) -> bool:
        return bool(self._stop)

    @property
    def used(self) -> float:
        """When a question or a change came last, by the monotonic clock; now while it is opened."""
        return self._state.active if self.ready.is_set() and not self.failure else time.monotonic()

    @property
    def may_open_again(self) -> bool:
        waits = self.failure and time.monotonic() - self._failed_at < REOPEN_SECONDS
        return self.ended.is_set() and not waits

    def _run(self) -> None:
        lock: int | None = None
        reason = ""
        try:
            vault = open_vault(self.root)
            if not (self.wanted or vault.config.watch.autostart):
                self.is_unwanted = True
                return
            lock = launch.take_vault(vault)
            self._open()
            reason = self._watch()
        except Exception as error:  # noqa: BLE001  # other vaults are answered all the same
            self._failed_at = time.monotonic()
            self.failure = getattr(error, "message", f"{type(error).__name__}: {error}")
            reason = f"error: {self.failure}"
        finally:
            for job in filter(None, (self._index, self._fetch)):
                job.stop()
            self.events.close()
            state.close()
            gc.unfreeze()  # what was loaded for this vault goes
            if lock is not None:
                os.close(lock)
            if reason:
                self._say(f"closed: {reason}")
            self.ended.set()
            self.ready.set()

    def _open(self) -> None:
        self._current = CurrentVault(
            self.root, self._say, self._embedder, self._progress, self.events
        )
        self._state = schedule.started(time.monotonic())
        self._has_index = self._current.has_index()
        if self._has_index:
            self._is_warm = True
            try:
                warm_up(self._current.vault, lambda: self._pass(full=False))
            except VaultError:  # it may be damaged
                self._is_warm = False
        self.ready.set()  # without an index the files answer, and nothing else needs the processor

    def _watch(self) -> str:
        """Reindex on save; return the reason for the end."""
        self.events.wait(schedule.FIRST_SECONDS)
        self.events.arm()
        self._say(f"watching {self._current.vault.lessons_dir}")
        self._state = schedule.started(time.monotonic())
        self._look(saved=True)  # changes until now raised no event
        while True:
            due = schedule.next(self._state, time.monotonic())
            if isinstance(due, schedule.Stop):
                return due.reason
            if isinstance(due, schedule.Wait):
                self._look(saved=self.events.wait(due.seconds))
                continue
            try:
                passed = self._do(due)
            except Exception as error:  # noqa: BLE001  # the next may go well
                self._progress.complain(f"{type(error).__name__}: {error}")
                passed = Passed(Outcome.FAILED, head=self._head)
            self._state = schedule.after(self._state, time.monotonic(), due, passed)
            self._progress.waits_for_others = self._state.waits_for_others

    def _say(self, message: str) -> None:
        if message:
            named = (f"{self.root.name}: {line}" for line in message.splitlines())
            self._say_line("\n".join(named))

    # what happened

    def _look(self, *, saved: bool) -> None:
        stop = self._reason_to_stop()
        try:
            if self._is_warm and not stop:
                keep_loaded(self._current.vault)
            events = self._gather(saved=saved, stop=stop)
        except Exception as error:  # noqa: BLE001  # the next may go well
            self._progress.complain(f"{type(error).__name__}: {error}")
            state = self._state
            events = schedule.Events(saved, polling=state.polling, head=state.head, stop=stop)
        self._state = schedule.heard(self._state, time.monotonic(), events)

    def _gather(self, *, saved: bool, stop: str) -> schedule.Events:
        current = self._current
        saved = self.events.arm() or saved  # the folder is another one
        had_index, self._has_index = self._has_index, current.has_index()
        saved = saved or (self._has_index and not had_index)  # the first one is loaded at once
        index_ended = self._take_ends()
        is_asked, self._questions = current.questions > self._questions, current.questions
        full_asked, index_damaged = current.take_calls()
        return schedule.Events(
            saved=saved,
            asked=is_asked,
            wants_full=full_asked or (not saved and current.skills_changed()),
            reopens=current.is_outdated(),
            index_damaged=index_damaged,
            index_ended=index_ended,
            model_due=self._fetch is None and current.model_is_due(),
            lessons_gone=not current.vault.lessons_dir.is_dir(),
            polling=self.events.polling,
            head=self._head,
            stop=stop,
        )

    def _take_ends(self) -> bool:
        if self._fetch is not None and self._fetch.succeeded is not None:
            self._say(self._fetch.close())
            self._fetch = None
        if self._index is None or self._index.succeeded is None:
            return False
        succeeded = self._index.succeeded
        self._progress.take_printed(self._index.close(), succeeded=succeeded)
        self._index = None
        return True

    def _reason_to_stop(self) -> str:
        if self._stop:
            return self._stop
        try:
            folder = self._current.vault.index_dir
        except VaultError as error:  # a pull brought another one
            return error.message
        if not folder.is_dir():
            return "the vault or its index folder is gone"
        if not ownership.is_ours(folder):
            return "its index folder is no longer ours"
        return ""

    # what is due

    def _do(self, due: Due) -> Passed | None:
        if due in schedule.PASSES:
            return self._pass(full=due is Task.FULL_PASS)
        if due is Task.TIDY:
            return self._tidy()
        if due is Task.REOPEN:
            self._current.reopen()
        elif due is Task.FETCH_MODEL:
            self._start_fetch()
        elif isinstance(due, Task):
            self._start_index(*_OPTIONS[due])
        return None

    @property
    def _head(self) -> object:
        """Return a stamp, new after each commit, checkout and reset, without asking git."""
        return () if self._reflog is None else files.stamp(self._reflog)

    def _pass(self, *, full: bool) -> Passed:
        """Take in the saved files; with `full`, also do all that can wait."""
        if full:
            self.events.check()
            self._reflog = git.reflog(self.root)
        head, began = self._head, time.monotonic()
        self._progress.begin(self.events.count())
        passed = Passed(Outcome.DONE)
        if self._current.vault.lessons_dir.is_dir():  # else it may come back
            passed = self._reconcile(full=full)
            if full:
                vault = self._current.vault
                owing = [feature.at_full_pass(vault) for feature in features.FEATURES]
                passed = replace(passed, owes=passed.owes or any(owing))
            native.trim_memory()
        failed = passed.outcome is Outcome.FAILED and self._index is None
        if passed.outcome is Outcome.DONE or failed:  # no use in waiting for what failed
            self._progress.finish()
        return replace(passed, seconds=time.monotonic() - began, head=head)

    def _reconcile(self, *, full: bool) -> Passed:
        vault = self._current.vault
        try:
            stats = reconcile.at_once(vault, full=full)
            self._progress.take(stats)
            if stats.busy:
                return Passed(Outcome.BUSY)
            if stats.pending or stats.unbuilt:
                return Passed(Outcome.TOO_MUCH)
            if not self._is_warm:
                warm_up(vault)
                self._is_warm = True
            else:  # before a question waits for it; the old version is free then
                load_tables(vault)
            wants_index = self._wants_vectors(vault, stats) or (full and self._wants_floors(vault))
            owes = full and stats.is_unfinished
            return Passed(Outcome.DONE, wrote=stats.wrote, wants_index=wants_index, owes=owes)
        except IndexStateError as error:
            self._progress.complain(error.message)
            return Passed(Outcome.FAILED if error.newer else Outcome.TOO_MUCH)
        except VaultError as error:
            self._progress.complain(error.message)
            return Passed(Outcome.FAILED)

    def _wants_vectors(self, vault: Vault, stats: Stats) -> bool:
        """Have a server make the vectors that rows lack; whether a background index is to do the rest.

        The built-in embedder takes all processors, a server at most its time: the pass waits for it
        unless it was late the last time.
        """
        if not stats.is_unfinished or completing.is_running(vault.index_dir):
            return False
        if vault.config.is_built_in or stats.unchecked:
            return True
        making = threading.Thread(target=self._make_vectors, args=(vault,), daemon=True)
        making.start()
        making.join(0.0 if self._is_late else SERVER_SECONDS)
        self._is_late = making.is_alive()
        unbuilt, self._unbuilt = self._unbuilt, False
        return unbuilt

    def _make_vectors(self, vault: Vault) -> None:
        try:
            completed = reconcile.complete(vault)
            self._unbuilt = completed.unbuilt
            if completed.wrote:
                load_tables(vault)
        except VaultError as error:
            completed = Completed(why=error.message)
        finally:
            state.close()
        self._progress.take_vectors(completed)

    def _wants_floors(self, vault: Vault) -> bool:
        """Whether the floors of the embedder are to be measured: that is tried once."""
        embedder = vault.open_index().embedder
        wants = floor.is_unmeasured(vault) and embedder != self._tried_to_measure
        self._tried_to_measure = embedder
        return wants

    def _tidy(self) -> Passed:
        with contextlib.suppress(VaultError):
            if reconcile.tidy(self._current.vault):
                return Passed(Outcome.DONE)
        return Passed(Outcome.BUSY)

    def _start_index(self, *options: str) -> None:
        if self._index is not None:
            return
        self._index = background_index.start_index(self._current.vault, *options, wait=True)
        if self._index is None:
            self._progress.finish()  # no use in waiting for it
        else:
            self._index.call_at_end(self.events.wake)

    def _start_fetch(self) -> None:
        self._say("fetching the embedding model; full text only until it is here")
        with tempfile.TemporaryFile() as output:
            words = ["--vault", str(self.root), "model", "fetch"]
            self._fetch = Job(words, output.fileno())
        self._fetch.call_at_end(self.events.wake)

    # what it answers

    def answer(self, question: Mapping[str, Any]) -> Mapping[str, Any]:
        """Answer a question about the vault, once it is open. Raises VaultError."""
        if not self._waiting.acquire(blocking=False):
            return {"declined": f"{MAX_WAITING} questions about this vault wait already"}
        try:
            if not self.ready.wait(OPEN_SECONDS):
                return {"declined": "the vault is being opened", "for_now": True}
            if self.is_unwanted:
                return {"closed": True}
            if self.failure:
                return {"declined": self.failure}
            if question["ask"] == "open":
                return {}
            return self._current.answer(question)
        finally:
            self._waiting.release()

    def status(self) -> dict[str, Any]:
        """Return the vault's part of `lessons watch --status`."""
        lessons: int | None = None
        with contextlib.suppress(VaultError):
            lessons = self._current.vault.open_index().lessons
        unusable = self._current.unusable
        return {
            "vault": str(self.root),
            "lessons": lessons,
            "indexing": self._index is not None,
            "events": "polling" if self.events.polling else "events",
            "limit": self.events.limit,
            "questions": self._current.questions,
            **self._progress.as_json(),
            **({"trouble": unusable.message} if unusable else {}),
        }
