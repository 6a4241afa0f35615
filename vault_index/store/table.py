"""The LanceDB tables: rows in, rows out. A `reader` searches them.

In each index folder are the tables `lessons`, with a row per passage, `skills`, with a row per skill, and
`documents`, with a row per document and category; their columns are in `schema`. An index without an
embedder has no vector column. `lance` has what goes to LanceDB, and how.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vault_index.store.filters import any_of, some_of
from vault_index.store.lance import LanceTable, Place
from vault_index.store.schema import LESSONS, VECTOR, LessonRow, Schema

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

# A reader uses an old version for no longer than a query: a changed manifest has it open the table.
KEEP_VERSIONS = timedelta(minutes=2)
COMPACT_AFTER = 20  # versions; LanceDB's advice for when to optimize


class Table:
    """One table of an index folder. `dimension` 0 means no vectors.

    It sees what other processes write, and follows no link that leads out of its folder. Every method
    raises IndexStateError for a damaged table; those that write raise WriteError, too.
    """

    def __init__(
        self, index: Place, dimension: int, schema: Schema = LESSONS, *, pinned: bool = False
    ) -> None:
        self.index = index if isinstance(index, Path) else Path(index.uri)
        self.schema = schema
        self.dimension = dimension
        self._lance = LanceTable(index, schema.table, pinned=pinned)

    def exists(self) -> bool:
        """Whether the table is there; that of a folder without opening it. Raises StoreError."""
        return self._lance.exists()

    def create(self) -> None:
        """Make the empty table with its indexes."""
        self._lance.create(self.schema, self.dimension)

    def differing(
        self, rows: Sequence[Mapping[str, Any]], paths: Collection[str]
    ) -> tuple[list[Any], list[str]]:
        """Return the rows, without vectors, that are not in the table as they are, and stale ids.

        Those are the ids of other rows of these paths. A session that goes on keeps the rows of its
        earlier turns. To replace all rows of a file in one commit LanceDB goes through the whole table:
        15 times what it takes to write those that differ.
        """
        if not paths:
            return list(rows), []
        columns = [name for name in self.schema.columns() if name != VECTOR]
        there = {row["id"]: row for row in self.rows(columns, any_of("path", paths))}
        other = [row for row in rows if there.get(row["id"]) != row]
        return other, sorted(there.keys() - {row["id"] for row in rows})

    def replace(self, rows: Sequence[Mapping[str, Any]], stale: Sequence[str]) -> None:
        """Put rows in the place of those with the same ids, then take out those of stale ids."""
        if rows:
            self.merge(rows)
        for where in some_of("id", stale):
            self._lance.delete(where)

    def merge(
        self, rows: Sequence[Mapping[str, Any]], *, delete: bool = False, update: bool = True
    ) -> None:
        """Write rows in one commit, in the place of those with the same ids; `delete` all others.

        Without `update` those that are there stay as they are.
        """
        import pyarrow as pa

        table = pa.Table.from_pylist(list(rows), schema=self.schema.arrow(self.dimension))
        self._lance.merge(table, delete=delete, update=update)

    def delete(self, where: str) -> None:
        """Take out the rows that a filter names, in one commit."""
        self._lance.delete(where)

    def fold(self, keep: timedelta | None = None) -> None:
        """Fold new rows into the indexes and, now and then, drop old versions.

        Until then full text counts words of old and new rows apart, and scores differ from those
        of a rebuild by up to a tenth.
        """
        many = self._lance.count_versions() > COMPACT_AFTER
        self._lance.optimize(keep or (KEEP_VERSIONS if many else None))

    def tidy(self) -> bool:
        """Drop the versions that no reader uses any more. False if some are too young for it."""
        self._lance.optimize(KEEP_VERSIONS)
        return self._lance.count_versions() <= 1

    def count(self, where: str | None = None) -> int:
        """Count the rows, or those that a filter names."""
        return self._lance.count(where)

    def rows(self, columns: Sequence[str], where: str | None = None) -> list[dict[str, Any]]:
        """Return columns of all rows, or of those a filter names."""
        rows: list[dict[str, Any]] = self._lance.scan(columns, where).to_pylist()
        return rows

    def rows_of_lessons(self, lesson_ids: Sequence[str]) -> list[LessonRow]:
        """Return all rows of these lessons, with all columns."""
        tables = (self._lance.scan(None, where) for where in some_of("lesson_id", lesson_ids))
        return [row for table in tables for row in table.to_pylist()]

    def rows_and_vectors(
        self, columns: Sequence[str], where: str | None = None
    ) -> tuple[list[dict[str, Any]], np.ndarray | None]:
        """Return what `rows` does, sorted by id, and the rows' vectors, float32[n, dimension].

        `id` must be among the columns. The vectors are None in an index that has none.
        """
        wanted = [*columns, VECTOR] if self.dimension else list(columns)
        scanned = self._lance.scan(wanted, where)
        rows = scanned.select(list(columns)).to_pylist()
        order = sorted(range(len(rows)), key=lambda at: str(rows[at]["id"]))
        vectors = matrix(scanned, self.dimension)[order] if self.dimension else None
        return [rows[at] for at in order], vectors

    def vectors(self, hashes: Collection[str]) -> dict[str, np.ndarray]:
        """Return the vectors that rows have already, by content hash: float32[dimension] each."""
        vectors: dict[str, np.ndarray] = {}
        for where in some_of("content_hash", hashes if self.dimension else ()):
            rows = self._lance.scan(["content_hash", VECTOR], where)
            keys = rows["content_hash"].to_pylist()
            vectors.update(zip(keys, matrix(rows, self.dimension), strict=True))
        return vectors


def matrix(rows: pa.Table, dimension: int) -> np.ndarray:
    """Return the vectors of an Arrow table as float32[rows, dimension]."""
    import numpy as np

    if not len(rows):
        return np.empty((0, dimension), np.float32)
    # not flatten(): that loads pyarrow.compute, which takes longer than all of a query
    pieces = [
        chunk.values.slice(chunk.offset * dimension, len(chunk) * dimension).to_numpy()
        for chunk in rows[VECTOR].chunks
    ]
    return np.concatenate(pieces, dtype=np.float32).reshape(len(rows), dimension)
