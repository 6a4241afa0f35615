"""Which rows of the lessons' table are pieces and taught prompts, and of which whole each is."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

COLUMNS = ("lesson_id", "is_whole", "taught")


class Families(NamedTuple):
    """The rows that are not whole lessons, in the order of their row ids."""

    ids: np.ndarray  # uint64[n], row ids, sorted
    wholes: np.ndarray  # uint64[n], the row id of the whole of each
    taught: np.ndarray  # str[n]: fires | silent for a taught prompt, "" for a piece

    @property
    def has_taught(self) -> bool:
        """Whether any of the rows is a taught prompt."""
        return bool((self.taught != "").any())

    @property
    def pieces(self) -> tuple[np.ndarray, np.ndarray]:
        """The row ids of pieces, and of the whole of each."""
        is_piece = self.taught == ""
        return self.ids[is_piece], self.wholes[is_piece]


def of(rows: pa.Table) -> Families:
    """Return the families of a table's rows, of which it has the row ids and `COLUMNS`."""
    import numpy as np

    ids, whole = rows["_rowid"].to_numpy(), rows["is_whole"].to_numpy().astype(bool)
    parts = np.flatnonzero(~whole)
    if not len(parts):
        return none()
    names = rows["lesson_id"].to_pylist()
    id_of = {names[at]: ids[at] for at in np.flatnonzero(whole)}
    parts = parts[np.argsort(ids[parts])]
    taught = np.array(rows["taught"].to_pylist(), "U6")[parts]
    return Families(ids[parts], np.array([id_of[names[at]] for at in parts], ids.dtype), taught)


def none() -> Families:
    """Return what a table without pieces and taught prompts has."""
    import numpy as np

    return Families(np.empty(0, np.uint64), np.empty(0, np.uint64), np.empty(0, "U6"))
