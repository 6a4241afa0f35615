"""A limit on the processor time of a rule, so that no file can hold up a commit.

Processor time, not wall time: on a busy machine an innocent file must still pass. A regular
expression looks for signals while it works, so the limit holds inside of one, too. Signals come to
the main thread only; elsewhere the limit is looked at between two findings.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType

from vault_index.check.pattern import T

RULE_SECONDS = 5.0  # of a processor, for one rule and one file; a page takes a few milliseconds
ALL_SECONDS = 20.0  # for all files of a commit; then only what may not wait is looked for
FILE_SECONDS = 0.02  # for that, for each file of the commit besides; a page takes 1 ms


class TooSlow(Exception):
    """A rule took more processor time than it may."""


def within(seconds: float, rule: Callable[..., Iterable[T]], *arguments: object) -> list[T]:
    """Return the results of a rule. Raises TooSlow if it takes more processor time than allowed."""
    last = time.process_time() + seconds
    results: list[T] = []
    with _alarm(seconds):
        for value in rule(*arguments):
            results.append(value)
            if time.process_time() > last:
                raise TooSlow
    return results


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """Raise TooSlow in this thread after so much processor time, if it is the main one."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def late(_number: int, _frame: FrameType | None) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGVTALRM, late)
    signal.setitimer(signal.ITIMER_VIRTUAL, max(0.001, seconds))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
