"""Load what a search needs before it is asked for, and keep the process small.

Python loads modules when they are needed, the embedder its model at the first text, and LanceDB a
table and the words of its text index when they are read.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

import vault_index.api.search  # noqa: F401  # `api` would load it at the first prompt
from vault_index.search import floor, query
from vault_index.vault import Vault

SAMPLE = "load the model"  # any text will do: the first makes CTranslate2 allocate
SAMPLE_CHARS = 200  # of a row, to search for


@contextlib.contextmanager
def embedding(vault: Vault, text: str) -> Iterator[None]:
    """Embed a text in a thread beside the body: loading the built-in model takes a core of its own.

    Nothing is embedded without a text, or where a server embeds: that one may take its time.
    """
    if not text or vault.config.embedder != "minilm":
        yield
        return
    thread = threading.Thread(target=query.embed_ahead, args=(vault, text), daemon=True)
    thread.start()
    yield
    thread.join()


def warm_up(vault: Vault, first: Callable[[], object] = lambda: None) -> None:
    """Load the model, the tables, the floors and the modules that the first prompt needs.

    `first` is done before the tables are opened, while the model loads. Raises IndexStateError without
    an index.
    """
    with embedding(vault, SAMPLE):
        first()
        load_tables(vault)
    if vault.config.embedder != "minilm":  # the server loads its model, too
        query.embed_ahead(vault, SAMPLE)


def load_tables(vault: Vault) -> None:
    """Open the tables that a prompt searches and read all that a search needs of them.

    After a write too: the tables that were open before keep the old version on disk. Raises
    IndexStateError without an index.
    """
    opened = vault.open_index()
    for table in (opened.store, opened.skills):
        if table.exists():
            table.load(rows=True)
            for row in table.take(range(table.count())[:1]):
                # LanceDB reads its text index when words are searched for
                table.matches(str(row["text"])[:SAMPLE_CHARS], 1)
    floor.in_force(vault)


# Keep the memory of a process that lives for days small (glibc; elsewhere nothing is done).

M_MMAP_THRESHOLD, M_ARENA_MAX = -3, -8  # of glibc's <malloc.h>
MMAP_BYTES = 256 * 1024  # a larger block gets pages of its own, which go back when it is freed


def limit(threads: int) -> None:
    """Take few malloc arenas, no Arrow pool, large blocks mmapped: it halves resident memory.

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
