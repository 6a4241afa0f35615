"""The passes that bring the index up to date, and how far they are: questions wait for that."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from vault_index import git
from vault_index.errors import IndexStateError, VaultError
from vault_index.index import reconcile
from vault_index.search import failures, floor
from vault_index.store.sync import Stats
from vault_index.watch import warming
from vault_index.watch.current import CurrentVault, stamp
from vault_index.watch.schedule import Outcome, Passed

PATIENCE_SECONDS = 3.0  # that a question waits while another process writes
OWN_PATIENCE_SECONDS = 8.0  # and while this one does; the command that asks waits for ten
POLL_SECONDS = 0.2  # between two looks whether another process is to be waited for


class Progress:
    """Passes that began and ended, and what came of them. `last` and `trouble` are for people."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.last = ""  # what the last pass that wrote did
        self.trouble = ""  # why the last pass failed
        self.problems: list[str] = []  # files that are not in the index as they are
        self._say = say
        self._started = time.monotonic()
        self._begun = 0
        self._finished = 0
        self._changed = threading.Condition()

    @property
    def has_finished_any(self) -> bool:
        """Whether a pass was ever finished."""
        return self._finished > 0

    def begin(self) -> None:
        """Note that a pass begins."""
        with self._changed:
            self._begun += 1

    def finish(self) -> None:
        """Note that what was saved before the last pass began is in the index, or cannot be."""
        with self._changed:
            self._finished = self._begun
            self._changed.notify_all()

    def wait_for_next(
        self, hurry: Callable[[], None], waits_for_others: Callable[[], bool]
    ) -> bool:
        """Call for a pass that begins from now on, and wait for its end. Whether it came soon."""
        with self._changed:
            wanted = self._begun + 1  # a pass that runs now may have looked too early
            hurry()
            began = time.monotonic()
            while self._finished < wanted:
                now = time.monotonic()
                end = began + (PATIENCE_SECONDS if waits_for_others() else OWN_PATIENCE_SECONDS)
                if now >= end:
                    return False
                self._changed.wait(min(end - now, POLL_SECONDS))
        return True

    def take(self, stats: Stats) -> None:
        """Keep and log what a pass came to."""
        problems = [f"{one.path}:{one.line}: {one.message}" for one in stats.problems]
        if not stats.busy and not stats.pending:
            self.trouble = ""
            self.problems = [f"warning: {problem}" for problem in problems]
        if stats.wrote:
            self.last = f"{stats} in {stats.seconds:.2f} s"
            self.say("\n".join([self.last, *problems]))

    def take_printed(self, printed: str, *, succeeded: bool) -> None:
        """Keep and log what a background index printed."""
        self.say(printed)
        self.last = printed.rpartition("\n")[2] or self.last
        self.trouble = "" if succeeded else self.last

    def complain(self, message: str) -> None:
        """Keep and log why something failed, once."""
        if message != self.trouble:
            self.say(f"error: {message}")
        self.trouble = message

    def say(self, message: str) -> None:
        """Log a message, which may be empty."""
        if message:
            self._say(message)

    def as_json(self) -> dict[str, Any]:
        """Return what `lessons watch --status` shows of it."""
        seconds = round(time.monotonic() - self._started)
        return {"seconds": seconds, "last": self.last, "trouble": self.trouble}


# The passes that bring the index up to date in the watcher's own process.

FILES_AT_ONCE = 8  # changed files that are indexed in this process: about 0.2 s


class Passes:
    """Quick and full passes over the current vault; `progress` is kept for those who wait for them."""

    def __init__(self, current: CurrentVault, progress: Progress) -> None:
        self._current = current
        self._progress = progress
        self._reflog: Path | None = None

    @property
    def head(self) -> object:
        """Return a text that changes with each commit, checkout and reset, without asking git."""
        return () if self._reflog is None else stamp(self._reflog)

    def run(self, *, full: bool) -> Passed:
        """Take in what was saved; with `full`, also do all that can wait."""
        if full:
            self._reflog = git.reflog(self._current.root)
        head = self.head
        began = time.monotonic()
        self._progress.begin()
        passed = Passed(Outcome.DONE)
        if self._current.vault.lessons_dir.is_dir():  # else it may come back
            passed = self._reconcile(full=full)
            warming.trim()
        return replace(passed, seconds=time.monotonic() - began, head=head)

    def tidy(self) -> Passed:
        """Clean old versions away; those that are too young for it, later."""
        is_tidy = False
        with contextlib.suppress(VaultError):
            is_tidy = reconcile.tidy(self._current.vault)
        return Passed(Outcome.DONE if is_tidy else Outcome.BUSY)

    def _reconcile(self, *, full: bool) -> Passed:
        vault = self._current.vault
        try:
            stats = reconcile.sync(vault, at_most=FILES_AT_ONCE, wait=False, full=full)
            self._progress.take(stats)
            if stats.busy:
                return Passed(Outcome.BUSY)
            if stats.pending:
                return Passed(Outcome.TOO_MUCH)
            floor_stale = floor.is_stale(vault) or failures.is_stale(vault)
            if stats.wrote:  # before a question waits for it; the old version is free then
                warming.load_tables(vault)
            return Passed(Outcome.DONE, wrote=stats.wrote, floor_stale=floor_stale)
        except IndexStateError as error:
            self._progress.complain(error.message)
            return Passed(Outcome.FAILED if error.newer else Outcome.TOO_MUCH)
        except VaultError as error:
            self._progress.complain(error.message)
            return Passed(Outcome.FAILED)
