"""Which rows of the lessons' table are pieces, and of which whole lesson each is."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa


def of(rows: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """Return the row ids of pieces, uint64[n], sorted, and of the whole of each."""
    import numpy as np

    ids, whole = rows["_rowid"].to_numpy(), rows["is_whole"].to_numpy().astype(bool)
    pieces = np.flatnonzero(~whole)
    if not len(pieces):
        return none()
    names = rows["lesson_id"].to_pylist()
    id_of = {names[at]: ids[at] for at in np.flatnonzero(whole)}
    pieces = pieces[np.argsort(ids[pieces])]
    return ids[pieces].copy(), np.array([id_of[names[at]] for at in pieces], ids.dtype)


def none() -> tuple[np.ndarray, np.ndarray]:
    """Return what a table without pieces has."""
    import numpy as np

    return np.empty(0, np.uint64), np.empty(0, np.uint64)
