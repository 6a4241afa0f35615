"""Prompts of lessons at which a lesson of another file comes first: for `lessons check`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from vault_index.check.finding import WARNING, Finding, line_of_key
from vault_index.errors import LessonError
from vault_index.hotpath import index_files
from vault_index.index.rows import hash_of_prompt
from vault_index.lesson.file import MAX_BYTES, decode
from vault_index.retrieval import query
from vault_index.retrieval.hit import Query
from vault_index.store import filters
from vault_index.vault import shown

if TYPE_CHECKING:
    import numpy as np

    from vault_index.store.reader import Reader
    from vault_index.vault import Vault

RIVAL_COSINE = 0.7  # to a prompt: what is less like it scores less than its own lesson
CANDIDATES = 64  # rows nearest to a prompt


def findings(vault: Vault, paths: Sequence[str]) -> Iterator[Finding]:
    """Yield a warning for each such prompt of these files. Raises IndexStateError without an index."""
    store = vault.open_index().store
    where = filters.any_of("path", map(shown, paths))
    rows = store.rows(("path", "prompts"), filters.all_of(filters.HAS_PROMPTS, where))
    pairs = dict.fromkeys((row["path"], prompt) for row in rows for prompt in row["prompts"])
    vectors = store.vectors({hash_of_prompt(prompt) for _, prompt in pairs})
    for path, prompt in sorted(pairs):
        key = hash_of_prompt(prompt)
        # a search for each prompt would take minutes
        if not _has_rival(store, key, vectors.get(key), path):
            continue
        first = next(iter(query.run(vault, Query(prompt, 1)).hits), None)
        if first and first.path != path:
            message = f"{prompt!r:.80} finds {first.path} first: write what this one alone answers"
            yield Finding(path, _line(vault, path), "prompt", message, WARNING)


def _has_rival(store: Reader, key: str, vector: np.ndarray | None, path: str) -> bool:
    """Whether a row of another file is near a prompt, or equal to it where there are no vectors."""
    if vector is None:
        others = store.rows(("path",), filters.of_taught([key]))
    else:
        places, cosines = store.nearest(vector, CANDIDATES)
        others = store.take(places[cosines >= RIVAL_COSINE])
    return any(row["path"] != path for row in others)


def _line(vault: Vault, path: str) -> int:
    with suppress(OSError, LessonError):
        return line_of_key(
            decode(index_files.read(vault.root / path, MAX_BYTES + 1), path), "prompts"
        )
    return 1
