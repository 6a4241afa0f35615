"""How a process that lives for days keeps its memory small (glibc; elsewhere nothing is done)."""

from __future__ import annotations

import contextlib
import os
from typing import Any

M_MMAP_THRESHOLD, M_ARENA_MAX = -3, -8  # of <malloc.h>
OWN_BYTES = 256 * 1024  # what is larger gets pages of its own, which go back when it is freed


def _libc() -> Any:
    import ctypes

    return ctypes.CDLL(None)


def spare(threads: int) -> None:
    """Use one heap for all forty threads, without large blocks, and no pool beside it: half of what
    would be kept.

    Takes effect on what is loaded after it.
    """
    os.environ.setdefault("LANCE_CPU_THREADS", str(threads))
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    with contextlib.suppress(AttributeError, OSError):
        _libc().mallopt(M_ARENA_MAX, 1)
        _libc().mallopt(M_MMAP_THRESHOLD, OWN_BYTES)


def give_back() -> None:
    """Give what is free to the system."""
    with contextlib.suppress(AttributeError, OSError):
        _libc().malloc_trim(0)
