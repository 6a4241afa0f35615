"""The questions to a vault in the watcher, and the passes that make their answers fresh.

A question right after a save finds what was saved: a `fresh` one waits for a pass that begins after it,
a hook for one that begins after the last event of the file system. The watcher declines a question,
so that the caller answers it itself, if the settings have just named another embedder, or if the index
is damaged. It declines no hook: a hook has no time to index, so it gets an answer from the files, or
the problem to log.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from vault_index import api
from vault_index.errors import IndexStateError, VaultError
from vault_index.recall.respond import respond
from vault_index.store import injections
from vault_index.store.injections import Event
from vault_index.store.sync import Stats
from vault_index.watch.current import CurrentVault
from vault_index.watch.events import FileEvents

AT_ONCE = (os.cpu_count() or 1) + 1  # searches: more of them only get in each other's way
PATIENCE_SECONDS = 3.0  # that a question waits while another process writes
OWN_PATIENCE_SECONDS = 8.0  # and while this one does; the command that asks waits for ten
ANSWER_SECONDS = 0.3  # that a hook's answer takes at most, after a save was taken in
POLL_SECONDS = 0.2  # between two looks whether another process is to be waited for

Answer = Mapping[str, Any]
T = TypeVar("T")


class Progress:
    """Passes that began and ended, and what came of them. `last` and `trouble` are for people."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.last = ""  # what the last pass that wrote did
        self.trouble = ""  # why the last pass failed
        self.problems: list[str] = []  # files that are not in the index as they are
        self.finished = 0  # passes
        self.waits_for_others = False  # another process writes, which may take long
        self._begun = 0
        self._heard = 0.0  # events, before the last pass began
        self._say = say
        self._started = time.monotonic()
        self._changed = threading.Condition()

    def begin(self, heard: int) -> None:
        with self._changed:
            self._begun += 1
            self._heard = heard

    def finish(self) -> None:
        """Note that the last pass took in all that was saved before it began, or cannot."""
        with self._changed:
            self.finished = self._begun
            self._changed.notify_all()

    def wait_for(
        self, heard: float, hurry: Callable[[], None], patience: Callable[[], float]
    ) -> bool:
        """Wait for a pass that began after the first `heard` events, and call for one if need be.

        Whether it ended in time: `patience` says, at each look, for how many seconds to wait at most.
        """
        with self._changed:
            wanted = self._begun  # one that runs now may have looked too early
            if self._heard < heard:
                wanted += 1
                hurry()
            began = time.monotonic()
            while self.finished < wanted:
                left = began + patience() - time.monotonic()
                if left <= 0:
                    return False
                self._changed.wait(min(left, POLL_SECONDS))
        return True

    def take(self, stats: Stats) -> None:
        problems = [f"{each.path}:{each.line}: {each.message}" for each in stats.problems]
        if not stats.busy and not stats.pending:
            self.trouble = ""
            self.problems = [f"warning: {problem}" for problem in problems]
        if stats.wrote:
            self.last = f"{stats} in {stats.seconds:.2f} s"
            self._say("\n".join([self.last, *problems]))

    def take_printed(self, printed: str, *, succeeded: bool) -> None:
        self._say(printed)
        self.last = printed.rpartition("\n")[2] or self.last
        self.trouble = "" if succeeded else self.last

    def complain(self, message: str) -> None:
        if message != self.trouble:
            self._say(f"error: {message}")
        self.trouble = message

    def as_json(self) -> dict[str, Any]:
        seconds = round(time.monotonic() - self._started)
        return {"seconds": seconds, "last": self.last, "trouble": self.trouble}


class Questions:
    """Answers questions, each in a thread, and keeps for the loop what they call for.

    `asked` counts them.
    """

    def __init__(self, current: CurrentVault, progress: Progress, events: FileEvents) -> None:
        self.asked = 0
        self._full_asked = False  # a question needs what only a full pass refreshes
        self._index_damaged = False  # a search showed it
        self._current = current
        self._progress = progress
        self._events = events
        self._slots = threading.BoundedSemaphore(AT_ONCE)

    def answer(self, question: Answer) -> Answer:
        """Answer or decline a question. Raises VaultError, which is part of the answer."""
        self.asked += 1
        is_waiting = self._progress.waits_for_others
        is_fresh = question.get("fresh") or (not is_waiting and self._current.skill_saved())
        notes = self._catch_up(bool(question.get("settled"))) if is_fresh else []
        self._current.take_settings()
        if question["ask"] == "hook":
            return self._answer_hook(question["with"])
        notes = [*self._current.vault.config.warnings(), *notes]
        if self._current.changes_embedder:
            return {"declined": "the settings have just changed", "for_now": True}
        if self._current.unusable:
            raise self._current.unusable
        try:
            answered = self._searched(partial(api.answer_on_wire, asked=question))
            return {"notes": notes, **answered}
        except IndexStateError as error:  # the command builds one and shows how far it is
            return {"declined": error.message, "for_now": not error.newer}

    def take_calls(self) -> tuple[bool, bool]:
        """Return, once, whether questions called for a full pass, and whether the index is damaged."""
        full, damaged = self._full_asked, self._index_damaged
        if full:  # one more question meanwhile gets the same pass
            self._full_asked = False
        if damaged:
            self._index_damaged = False
        return full, damaged

    def _answer_hook(self, asked: Answer) -> Answer:
        event, until = Event.of(asked["event"]), asked["until"]
        self._take_in_saves(until)
        unusable = self._current.unusable
        answer = partial(respond, event=event, by="watcher", ms=asked["ms"], until=until)
        try:
            problem = unusable.message if unusable else ""
            return {"answer": self._searched(answer), "problem": problem}
        except VaultError as error:
            is_damaged = isinstance(error, IndexStateError) and not error.newer
            if not is_damaged or event.hook_event_name != injections.PROMPT:
                return {"answer": None, "problem": error.message}
            problem = f"{error.message}; the lesson files were searched"
        found = answer(self._current.vault, from_files=True)
        return {"answer": found, "problem": problem, "missed": False}

    def _searched(self, answer: Callable[..., T]) -> T:
        """Return an answer of the vault. Raises VaultError.

        The version of the index that was open may be gone, after a laptop slept: so it is tried twice.
        """
        with self._slots:
            with suppress(IndexStateError):
                return answer(self._current.vault)
            try:
                return answer(self._current.vault)
            except IndexStateError as error:
                if not error.newer and self._progress.finished:
                    self._index_damaged = True
                    self._events.wake()
                raise

    def _patience(self) -> float:
        return PATIENCE_SECONDS if self._progress.waits_for_others else OWN_PATIENCE_SECONDS

    def _take_in_saves(self, until: float) -> None:
        """Wait for what was saved a moment ago, if that comes in time for a hook's answer."""
        seconds = min(until - time.monotonic() - ANSWER_SECONDS, OWN_PATIENCE_SECONDS)

        def patience() -> float:
            is_vain = self._progress.waits_for_others or self._progress.trouble
            return 0.0 if is_vain else seconds

        self._progress.wait_for(self._events.count(), self._events.hurry, patience)

    def _catch_up(self, full: bool) -> list[str]:
        """Wait until saved files, with `full` all that follows, are indexed; return the notes."""
        if full:
            self._full_asked = True
        notes = []
        if not self._progress.wait_for(math.inf, self._events.hurry, self._patience):
            notes.append("note: another process is indexing; searching the index as it is")
        if self._progress.trouble:
            notes.append(f"warning: {self._progress.trouble}; searching the index as it is")
        return notes + self._progress.problems
