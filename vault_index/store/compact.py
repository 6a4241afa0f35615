"""Vectors in a third of the memory, for tables too large to multiply all of their vectors.

The first 128 principal components of unit vectors keep nearly all of what sets them apart: of 250,000
vectors of MiniLM in 384 dimensions the nearest ten are among the nearest 500 by components for each of 60
questions (of 64 components: .98). That takes 12 ms and 0.5 kB a row; all of the vectors take 1.5.
Who asks compares the nearest by components once more by their vectors, so that scores are exact.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

COMPONENTS = 128
SAMPLE = 5_000  # vectors that the components are of


class Compact:
    """The components of `count` unit vectors, whose axes are those of a sample, float32[n, dimension]."""

    def __init__(self, sample: np.ndarray, count: int, *, with_halves: bool = False) -> None:
        import numpy as np

        # the whole vectors at half precision: a cosine differs by 0.0002 at most
        self._halves = np.zeros((count, sample.shape[1]), np.float16) if with_halves else None

        _, axes = np.linalg.eigh(sample.T @ sample)
        self._axes = np.ascontiguousarray(axes[:, ::-1][:, :COMPONENTS], np.float32)
        self._parts = np.zeros((count, self._axes.shape[1]), np.float32)

    def picked(self, places: np.ndarray) -> Compact:
        """Return the components of the vectors at these places, on the same axes."""
        some = copy(self)
        some._parts = self._parts[places]
        some._halves = None if self._halves is None else self._halves[places]
        return some

    def put(self, places: np.ndarray, vectors: np.ndarray) -> None:
        """Keep vectors, float32[n, dimension], at these places."""
        self._parts[places] = vectors @ self._axes
        if self._halves is not None:
            self._halves[places] = vectors

    def likeness(self, vector: np.ndarray) -> np.ndarray:
        """Return about the cosine of each vector with a unit vector, float32[count]."""
        likeness: np.ndarray = self._parts @ (vector @ self._axes)
        return likeness

    def cosines(self, places: np.ndarray, vector: np.ndarray) -> np.ndarray | None:
        """Return the cosines of the vectors at these places, float32[n]; None without the halves."""
        if self._halves is None:
            return None
        cosines: np.ndarray = self._halves[places].astype("f4") @ vector
        return cosines

    def nearest(
        self, vector: np.ndarray, limit: int, among: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the places of the vectors that seem nearest to a unit vector, int64[limit].

        `among` are the places that count; None for all.
        """
        import numpy as np

        likeness = self.likeness(vector)
        if among is not None:
            likeness = likeness[among]
        limit = min(limit, len(likeness))
        if not limit:
            return np.empty(0, np.int64)
        places: np.ndarray = np.argpartition(-likeness, limit - 1)[:limit]
        return places if among is None else among[places]
