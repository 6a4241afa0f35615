"""How far the passes are: the loop writes it, and questions wait for it in their threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from vault_index.index import Stats

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
