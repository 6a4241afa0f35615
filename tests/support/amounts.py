"""How much tests do: `TESTS_IN_FULL=1 pytest` has the big numbers, which take minutes more."""

from __future__ import annotations

import os

IN_FULL = bool(os.environ.get("TESTS_IN_FULL"))


def amount(usual: int, full: int) -> int:
    """Return the number of repetitions, or of characters, that this run of the tests has."""
    return full if IN_FULL else usual
