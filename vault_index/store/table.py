"""The LanceDB tables: rows in, rows out. A `reader` searches them.

In each index folder are the tables `lessons`, with a row per passage, `skills`, with a row per skill, and
`documents`, with a row per document and category; their columns are in `schema`. An index without an
embedder has no vector column. `lance` has what goes to LanceDB, and how.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from vault_index.store.filters import some_of
from vault_index.store.lance import LanceTable
from vault_index.store.schema import VECTOR, LessonRow

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

# A reader uses an old version for no longer than a query: a changed manifest has it open the table.
KEEP_VERSIONS = timedelta(minutes=2)
COMPACT_AFTER = 20  # versions; LanceDB's advice for when to optimize


class Table(LanceTable):
    """A table by its rows, as `schema` describes them."""

    def differing(
        self, rows: Sequence[Mapping[str, Any]], where: str
    ) -> tuple[list[Any], list[str]]:
        """Return the rows, without vectors, that are not in the table as they are, and stale ids.

        Those are the ids of other rows that a filter names, "" for none. A session that goes on keeps
        the rows of its earlier turns. To replace all rows of a file in one commit LanceDB goes through
        the whole table: 15 times what it takes to write those that differ.
        """
        if not where:
            return list(rows), []
        columns = [name for name in self.schema.columns() if name != VECTOR]
        there = {row["id"]: row for row in self.rows(columns, where)}
        other = [row for row in rows if there.get(row["id"]) != row]
        return other, sorted(there.keys() - {row["id"] for row in rows})

    def replace(self, rows: Sequence[Mapping[str, Any]], stale: Sequence[str]) -> None:
        """Put rows in the place of those with the same ids, then take out those of stale ids."""
        if rows:
            self.merge(rows)
        for where in some_of("id", stale):
            self.delete(where)

    def merge(
        self, rows: Sequence[Mapping[str, Any]], *, delete: bool = False, update: bool = True
    ) -> None:
        """Write rows in one commit, in the place of those with the same ids; `delete` all others.

        Without `update` those that are there stay as they are.
        """
        import pyarrow as pa

        table = pa.Table.from_pylist(list(rows), schema=self.schema.arrow(self.dimension))
        self.merge_arrow(table, delete=delete, update=update)

    def fold(self, keep: timedelta | None = None) -> None:
        """Fold new rows into the indexes and, now and then, drop old versions.

        Until then full text counts words of old and new rows apart, and scores differ from those
        of a rebuild by up to a tenth.
        """
        many = self.count_versions() > COMPACT_AFTER
        self.optimize(keep or (KEEP_VERSIONS if many else None))

    def tidy(self) -> bool:
        """Drop the versions that no reader uses any more. False if some are too young for it."""
        self.optimize(KEEP_VERSIONS)
        return self.count_versions() <= 1

    def rows(self, columns: Sequence[str], where: str | None = None) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.scan(columns, where).to_pylist()
        return rows

    def rows_of_lessons(self, lesson_ids: Sequence[str]) -> list[LessonRow]:
        tables = (self.scan(None, where) for where in some_of("lesson_id", lesson_ids))
        return [row for table in tables for row in table.to_pylist()]

    def rows_and_vectors(
        self, columns: Sequence[str], where: str | None = None
    ) -> tuple[list[dict[str, Any]], np.ndarray | None]:
        """Return what `rows` does, sorted by id, and the rows' vectors, float32[n, dimension].

        `id` must be among the columns. The vectors are None in an index that has none.
        """
        wanted = [*columns, VECTOR] if self.dimension else list(columns)
        scanned = self.scan(wanted, where)
        rows = scanned.select(list(columns)).to_pylist()
        order = sorted(range(len(rows)), key=lambda at: str(rows[at]["id"]))
        vectors = matrix(scanned, self.dimension)[order] if self.dimension else None
        return [rows[at] for at in order], vectors

    def vectors(self, hashes: Collection[str]) -> dict[str, np.ndarray]:
        """Return the vectors that rows have already, by content hash: float32[dimension] each."""
        vectors: dict[str, np.ndarray] = {}
        for where in some_of("content_hash", hashes if self.dimension else ()):
            rows = self.scan(["content_hash", VECTOR], where)
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
