"""Compare a time that was stored with the clock, which people and machines put forward and back."""

from __future__ import annotations

import time


def is_near(then: float, seconds: float) -> bool:
    """Whether a stored time (seconds since 1970) is less than so many seconds from now, either side.

    After the clock was put back, what was stored before is to come. Nobody waits until it has come.
    """
    return abs(time.time() - then) < seconds
