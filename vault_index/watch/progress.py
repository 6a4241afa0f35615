"""How far a vault's passes are: a question waits for one, people read what came of the last."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from vault_index.store.sync import Stats

POLL_SECONDS = 0.2  # between two looks whether another process is to be waited for


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
        """Note that what was saved before the last pass began is in the index, or cannot be."""
        with self._changed:
            self.finished = self._begun
            self._changed.notify_all()

    def wait_for(
        self, heard: float, hurry: Callable[[], None], patience: Callable[[], float]
    ) -> bool:
        """Wait for the end of a pass that began after so many events, and call for it if none did.

        Whether it came within as many seconds as `patience` says at each look.
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
