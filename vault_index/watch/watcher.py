"""The warm process of a vault: it reindexes on save and keeps everything that a search needs loaded.

A loop: gather what happened, ask `schedule` what is due, do it. Questions are answered beside it
(`questions`). Small changes are indexed here. Many at once, a rebuild and the floor are left to a
`lessons index` of lower priority: the embedder's use of all processors and LanceDB's memory are then
not those of the process that answers.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from vault_index.errors import VaultError
from vault_index.hotpath import protocol
from vault_index.store import ownership
from vault_index.watch import background_index, malloc, schedule
from vault_index.watch.current import CurrentVault, stamp_package
from vault_index.watch.events import FileEvents
from vault_index.watch.job import Job
from vault_index.watch.journal import JournalWatch
from vault_index.watch.passes import Passes
from vault_index.watch.progress import Progress
from vault_index.watch.questions import AT_ONCE, Questions
from vault_index.watch.schedule import Due, Outcome, Passed
from vault_index.watch.server import Server


class Watcher:
    """Runs until it is stopped or has no reason to go on. The caller holds the vault's lock."""

    def __init__(self, root: Path, say: Callable[[str], None]) -> None:
        self.root = root
        self._say = say
        self._current = CurrentVault(root, say)
        self._package = stamp_package()
        self._events = FileEvents(self._current.vault.lessons_dir, say)
        self._progress = Progress(say)
        self._passes = Passes(self._current, self._progress)
        self._state = schedule.started(time.monotonic())
        self._journal = JournalWatch(lambda: self._current.vault, say)
        self._questions = Questions(
            self._current,
            self._progress,
            self._events,
            lambda: self._state.waits_for_others,
            self._journal.answer,
        )
        self._asked = 0  # questions at the last look
        self._index: Job | None = None
        self._fetch: Job | None = None
        self._stop = ""

    def run(self) -> str:
        """Watch the vault; return the reason for the end."""
        malloc.limit(AT_ONCE)
        self._current.warm_up(lambda: self._pass(full=False))
        with self._serving():
            signal.alarm(0)  # see entrypoints.watcher: this start did not hang
            gc.freeze()  # what is loaded stays, and is no longer looked through
            gc.enable()
            self._events.wait(schedule.FIRST_SECONDS)
            self._events.start()
            self._say(f"watching {self._current.vault.lessons_dir}")
            self._state = schedule.started(time.monotonic())
            self._journal.start()
            self._look(saved=True)  # changes until now raised no event
            reason = self._loop()
        self._say(f"ended: {reason}")
        return reason

    def end(self, reason: str) -> None:
        """Make `run` return; may be called from a signal handler or another thread."""
        self._stop = self._stop or reason
        self._events.wake()

    def _loop(self) -> str:
        while True:
            due = schedule.next(self._state, time.monotonic())
            if isinstance(due, schedule.Stop):
                return due.reason
            if isinstance(due, schedule.Wait):
                self._look(saved=self._events.wait(due.seconds))
                continue
            try:
                passed = self._do(due)
            except Exception as error:  # noqa: BLE001  # the next may go well
                self._progress.complain(f"{type(error).__name__}: {error}")
                passed = Passed(Outcome.FAILED, head=self._passes.head)
            self._state = schedule.after(self._state, time.monotonic(), due, passed)

    @contextlib.contextmanager
    def _serving(self) -> Iterator[None]:
        self._server = Server(str(self.root), self._answer)
        self._server.start()
        try:
            yield
        finally:
            self._server.close()
            self._events.close()
            for job in filter(None, (self._index, self._fetch)):
                job.stop()

    # what happened

    def _look(self, *, saved: bool) -> None:
        """Report to the schedule what happened since the last look."""
        stop = self._reason_to_stop()
        try:
            events = self._gather(saved=saved, stop=stop)
        except Exception as error:  # noqa: BLE001  # the next may go well
            self._progress.complain(f"{type(error).__name__}: {error}")
            state = self._state
            events = schedule.Events(saved, polling=state.polling, head=state.head, stop=stop)
        self._state = schedule.heard(self._state, time.monotonic(), events)

    def _gather(self, *, saved: bool, stop: str) -> schedule.Events:
        current, questions = self._current, self._questions
        saved = self._events.arm() or saved  # the folder is another one
        index_ended = self._take_ends()
        asked, self._asked = questions.asked > self._asked, questions.asked
        full_asked, index_damaged = questions.take_calls()
        return schedule.Events(
            saved=saved,
            asked=asked,
            full_asked=full_asked,
            settings_changed=current.settings_changed(),
            skills_changed=not saved and current.skills_changed(),
            index_damaged=index_damaged,
            index_ended=index_ended,
            model_came=current.model_came(),
            model_due=self._fetch is None and current.model_is_due(),
            lessons_gone=not current.vault.lessons_dir.is_dir(),
            transcripts_grew=self._journal.look(),
            polling=self._events.polling,
            head=self._passes.head,
            stop=stop,
        )

    def _take_ends(self) -> bool:
        """Take the ends of jobs. Whether a background index ended."""
        if self._fetch is not None and self._fetch.succeeded is not None:
            self._progress.say(self._fetch.close())
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
        if not self._server.is_reachable():
            return "its socket is gone"
        if stamp_package() != self._package:
            return "another version of vault-index was installed"
        return ""

    # what is due

    def _do(self, due: Due) -> Passed | None:
        match due:
            case schedule.QuickPass():
                return self._pass(full=False)
            case schedule.FullPass():
                self._events.check()
                return self._pass(full=True)
            case schedule.BackgroundIndex():
                self._start_index()
            case schedule.Rebuild():
                self._start_index("--rebuild")
            case schedule.FitFloor():  # without a sync: it would hold the lock at the next save
                self._start_index("--floor")
            case schedule.FetchModel():
                self._start_fetch()
            case schedule.Reopen():
                self._current.reopen()
            case schedule.Tidy():
                return self._passes.tidy()
            case schedule.TakeIn():
                self._journal.call()
        return None

    def _pass(self, *, full: bool) -> Passed:
        passed = self._passes.run(full=full)
        failed = passed.outcome is Outcome.FAILED and self._index is None
        if passed.outcome is Outcome.DONE or failed:  # no use in waiting for what failed
            self._progress.finish()
        return passed

    def _start_index(self, *options: str) -> None:
        if self._index is not None:
            return
        self._index = background_index.start(self._current.vault, *options, wait=True)
        if self._index is None:
            self._progress.finish()  # no use in waiting for it
        else:
            self._index.call_at_end(self._events.wake)

    def _start_fetch(self) -> None:
        self._say("fetching the embedding model; full text only until it is here")
        with tempfile.TemporaryFile() as output:
            words = ["--vault", str(self.root), "model", "fetch"]
            self._fetch = Job(words, output.fileno())
        self._fetch.call_at_end(self._events.wake)

    # what it answers

    def _answer(self, question: Mapping[str, Any]) -> Mapping[str, Any]:
        if question.get("protocol") != protocol.PROTOCOL:
            return {"declined": "another version of the protocol"}
        match question.get("ask"):
            case "status":
                return self._status()
            case "stop":
                self.end("asked to")
                return {}
            case "look":  # git changed something
                self._events.hurry()
                return {}
            case "journal grown":
                if question.get("settings") != protocol.settings_of(os.environ):
                    return {"declined": "the watcher was started with other settings"}
                self._journal.call()
                return {}
            case _:
                return self._questions.answer(question)

    def _status(self) -> dict[str, Any]:
        from importlib import metadata  # takes as long to load as all of Python

        lessons: int | None = None
        with contextlib.suppress(VaultError):
            lessons = self._current.vault.open_index().lessons
        unusable = self._current.unusable
        return {
            "pid": os.getpid(),
            "version": metadata.version("vault-index"),
            "vault": str(self.root),
            "socket": self._server.place,
            "lessons": lessons,
            "indexing": self._index is not None,
            "events": "polling" if self._events.polling else "events",
            "questions": self._questions.asked,
            **self._progress.as_json(),
            **({"trouble": unusable.message} if unusable else {}),
        }
