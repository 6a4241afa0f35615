"""Keep the memory of a process that lives for days small (glibc; elsewhere nothing is done)."""

from __future__ import annotations

import contextlib
import os
from typing import Any

M_MMAP_THRESHOLD, M_ARENA_MAX = -3, -8  # of glibc's <malloc.h>
MMAP_BYTES = 256 * 1024  # a larger block gets pages of its own, which go back when it is freed


def limit(threads: int) -> None:
    """Few malloc arenas, no Arrow pool, large blocks mmapped: halves resident memory.

    `threads` is how many search at once: with one arena for all they would wait for each other. It all
    holds for what is loaded later, until the process ends.
    """
    os.environ.setdefault("LANCE_CPU_THREADS", str(threads))
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    with contextlib.suppress(AttributeError, OSError):
        _libc().mallopt(M_ARENA_MAX, threads)
        _libc().mallopt(M_MMAP_THRESHOLD, MMAP_BYTES)


def trim() -> None:
    """Return free memory to the system."""
    with contextlib.suppress(AttributeError, OSError):
        _libc().malloc_trim(0)


def _libc() -> Any:
    import ctypes

    return ctypes.CDLL(None)
