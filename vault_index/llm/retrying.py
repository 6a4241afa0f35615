"""A failure that may pass is tried again three times, after pauses that double; others are not.

What passes: a network that breaks, a server that is overloaded, restarts, or limits the rate. A model
that declined, a wrong key and a question that the server refuses do not; nor does a time-out: the call
may have been paid for, and the next one would wait as long.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TypeVar

from vault_index.errors import ModelCallError

RETRIES = 3
FIRST_SECONDS = 0.5  # of a pause; then 1 and 2, each up to half as long again
MAX_SECONDS = 20.0  # that a server may ask to wait; where it asks for more, nothing is tried again

Sleep = Callable[[float], None]
_T = TypeVar("_T")


class PassingError(ModelCallError):
    """A failure that may pass. `final` is raised if it does not; `after` are the seconds to wait."""

    def __init__(self, final: ModelCallError, after: float = 0.0) -> None:
        super().__init__(final.message, final.hint)
        self.final = final
        self.after = after


def call(attempt: Callable[[], _T], sleep: Sleep) -> _T:
    """Return what an attempt returns, the first or one of three more. Raises ModelCallError."""
    pause = FIRST_SECONDS
    for left in range(RETRIES, -1, -1):
        try:
            return attempt()
        except PassingError as error:
            if not left or error.after > MAX_SECONDS:
                raise error.final from None
            sleep(max(error.after, pause * random.uniform(1, 1.5)))
            pause *= 2
    raise AssertionError  # the last attempt returns or raises


def passes(status: int) -> bool:
    """Whether a failure with a status of HTTP may pass."""
    return status == 429 or status >= 500
