"""The passes that bring the index up to date in the watcher's own process."""

from __future__ import annotations

import contextlib
import time
from dataclasses import replace
from pathlib import Path

from vault_index import git
from vault_index.errors import IndexStateError, VaultError
from vault_index.index import reconcile
from vault_index.search import floor
from vault_index.watch import malloc, warming
from vault_index.watch.current import CurrentVault, stamp
from vault_index.watch.progress import Progress
from vault_index.watch.schedule import Outcome, Passed

FILES_AT_ONCE = 8  # changed files that are indexed in this process: about 0.2 s


class Passes:
    """Quick and full passes over the current vault; `progress` is kept for those who wait for them."""

    def __init__(self, current: CurrentVault, progress: Progress) -> None:
        self._current = current
        self._progress = progress
        self._reflog: Path | None = None

    @property
    def head(self) -> object:
        """What changes with each commit, checkout and reset, without asking git."""
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
            malloc.trim()
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
            floor_stale = floor.is_stale(vault)
            if stats.wrote:  # before a question waits for it; the old version is free then
                warming.load_tables(vault)
            return Passed(Outcome.DONE, wrote=stats.wrote, floor_stale=floor_stale)
        except IndexStateError as error:
            self._progress.complain(error.message)
            return Passed(Outcome.FAILED if error.newer else Outcome.TOO_MUCH)
        except VaultError as error:
            self._progress.complain(error.message)
            return Passed(Outcome.FAILED)
