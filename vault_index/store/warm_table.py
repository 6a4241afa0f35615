"""A table whose rows' numbers and vectors are in memory, for searches that score all rows at once.

For readers alone: it stays at the version that it had when it was first asked.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from vault_index.store.schema import Schema
from vault_index.store.table import Table

if TYPE_CHECKING:
    import numpy as np

    from vault_index.store.table import Compact

MOST_NEW = 2_000  # rows: with more, all vectors are read once more
KEPT_MASKS = 8  # a byte a row


class WarmTable(Table):
    """A table for reading, with the schema's columns `in_memory`."""

    def __init__(self, index: Path, dimension: int, schema: Schema) -> None:
        super().__init__(index, dimension, schema, pinned=True)
        self._kept: tuple[np.ndarray, Compact] | None = None  # of an earlier version
        self._masks: dict[str, np.ndarray] = {}  # of `are`, the last one last

    def follow(self, before: WarmTable) -> None:
        """Take over what an earlier version of the same table has in memory, as far as it holds.

        A row id means the same row in all versions: a change writes another row.
        """
        self._kept = before.__dict__.get("_compact")

    @cached_property
    def _compact(self) -> tuple[np.ndarray, Compact]:
        kept, self._kept = self._kept, None
        if kept is None:
            return self._read_compact()
        ids, (old_ids, old) = self.columns["_rowid"], kept
        at = old_ids.searchsorted(ids).clip(max=len(old_ids) - 1)
        new = (old_ids[at] != ids).nonzero()[0]
        if len(new) > MOST_NEW:
            return self._read_compact()
        compact = old.picked(at)
        compact.put(new, self._vectors_of(ids[new]))
        return ids, compact

    def load(self, *, rows: bool = False) -> None:
        """Load what each search needs; with `rows` also what hits show, in a small table."""
        _ = self.by_time(None)
        if self.dimension:
            _ = self._compact if self.is_large else self._exact
        if rows:
            super().load(rows=True)

    def likeness(self, vector: np.ndarray) -> np.ndarray:
        """Return the cosine of each row with a unit vector, float32[n], in the order of `columns`.

        In a large table it is about right.
        """
        if self.is_large:
            return self._compact[1].likeness(vector)
        cosines: np.ndarray = self._exact @ vector
        return cosines

    def by_time(self, where: str | None) -> np.ndarray:
        """Return the places of the first rows of records in `columns`, int64[n], oldest first."""
        order = self._by_time
        return order if where is None else order[self.are(where)[order]]

    @cached_property
    def _by_time(self) -> np.ndarray:
        import numpy as np

        columns = self.columns
        firsts = np.flatnonzero(columns["position"] == 0)
        order: np.ndarray = firsts[np.lexsort((columns["place"][firsts], columns["at"][firsts]))]
        return order

    def named(self, where: str | None) -> list[int]:
        """Return the row ids of the records that a filter names, oldest first."""
        import numpy as np

        columns = self.columns
        ids = self._scan(["position"], where, ids=True)["_rowid"].to_numpy()
        at = columns["_rowid"].searchsorted(ids)
        at = at[columns["position"][at] == 0]
        order = np.lexsort((columns["place"][at], columns["at"][at]))
        return [int(id) for id in columns["_rowid"][at[order]]]

    @cached_property
    def columns(self) -> dict[str, np.ndarray]:
        """The columns that the schema wants in memory, in the order of their `_rowid`, uint64[n].

        Times are whole microseconds since 1970, int64; 0 for none.
        """
        import numpy as np

        rows = self._scan(self.schema.in_memory, ids=True)
        ids = rows.column("_rowid").to_numpy()
        order = np.argsort(ids, kind="stable")
        columns = {"_rowid": ids[order]}
        for name in self.schema.in_memory:
            values = rows.column(name).to_numpy()
            if values.dtype.kind == "M":
                values = np.where(np.isnat(values), 0, values.astype("M8[us]").astype(np.int64))
            columns[name] = values[order]
        return columns

    def are(self, where: str) -> np.ndarray:
        """Return which rows a filter names, bool[n], in the order of `columns`.

        The last few filters are kept: most searches are of one project.
        """
        import numpy as np

        mask = self._masks.pop(where, None)
        if mask is None:
            mask = np.zeros(len(self.columns["_rowid"]), bool)
            ids = self._scan([self.schema.indexed[0]], where, ids=True)["_rowid"].to_numpy()
            mask[np.searchsorted(self.columns["_rowid"], ids)] = True
        self._masks[where] = mask
        while len(self._masks) > KEPT_MASKS:
            del self._masks[next(iter(self._masks))]
        return mask

    @cached_property
    def _exact(self) -> np.ndarray:
        ids, vectors = self._all_vectors
        return vectors[ids.argsort(kind="stable")]
