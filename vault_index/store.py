"""The LanceDB tables: rows in, nearest and full-text matches out. The only importer of lancedb.

In each index folder are the tables `lessons`, with a row per passage, `skills`, with a row per
skill, and `catalog`, with a row per document and category, all of one schema. An index without an
embedder has no vector column. Importing lancedb takes a second, so it happens when the first
table is opened.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from vault_index import ownership
from vault_index.categories import MAX_DEPTH, CategoryPath
from vault_index.errors import IndexStateError, WriteError

if TYPE_CHECKING:
    import lancedb
    import numpy as np
    import pyarrow as pa

LESSONS, SKILLS, CATALOG = "lessons", "skills", "catalog"
FULL_TEXT = "fulltext"  # the column that full text searches: categories, title, title, text
# A reader may stand on an old version, but not for longer than a query takes: it opens the table
# anew when the manifest has changed.
KEEP_VERSIONS = timedelta(minutes=2)
COMPACT_AFTER = 20  # versions; LanceDB's advice for when to optimize
ANN_ROWS = 50_000  # below that a flat scan is as fast (14 ms at 10,000 rows) and exact
LEVELS = tuple(f"category_l{depth}" for depth in range(MAX_DEPTH))
_SHOWN = (
    *("id", "lesson_id", "path", "title", "document", "link", "text", "categories", "tags"),
    *("position", "type", "confidence", "created_at", "updated_at", "author", "file_hash"),
    "withheld",
)


class Row(TypedDict, total=False):
    """A passage with all that is known of its lesson. `vector` is float32[dimension]."""

    id: str
    lesson_id: str
    path: str
    title: str
    document: str
    description: str
    link: str
    written_by: str
    text: str
    fulltext: str
    filed_by: str
    position: int
    categories: list[str]
    category_l0: list[str]
    category_l1: list[str]
    category_l2: list[str]
    category_l3: list[str]
    tags: list[str]
    fires_on: list[str]
    silent_on: list[str]
    type: str
    confidence: int
    created_at: datetime | None
    updated_at: datetime | None
    author: str
    file_hash: str  # of the file as it was when this row was made
    withheld: str  # why hooks leave it out: an error in the file; "" otherwise
    content_hash: str  # of what is embedded
    vector: Any


class Store:
    """One table of an index folder, by its name. `dimension` 0 means no vectors.

    `pinned` is for readers: such a store stands on the version that was there when it was first
    asked. Row ids keep their meaning then, whoever writes meanwhile, and nobody waits.
    """

    def __init__(
        self, index: Path, dimension: int, table: str = LESSONS, *, pinned: bool = False
    ) -> None:
        self.index = index
        self.table = table
        self.dimension = dimension
        self.pinned = pinned
        self._opened: lancedb.table.Table | None = None

    def exists(self) -> bool:
        """Tell whether the table's folder is there, without opening it."""
        return (self.index / f"{self.table}.lance" / "_versions").is_dir()

    def create(self) -> None:
        """Make the empty table with its indexes. Raises WriteError."""
        from lancedb.index import FTS, BTree, LabelList

        with _errors(self.index):
            table = self._connect().create_table(self.table, schema=_schema(self.dimension))
            # without it two processes that insert the same new ids duplicate them
            table.set_unenforced_primary_key("id")
            for column in ("id", "lesson_id", "path", "content_hash"):
                table.create_index(column, config=BTree())
            for column in LEVELS:
                table.create_index(column, config=LabelList())
            table.create_index(
                FULL_TEXT, config=FTS(with_position=False, stem=True, remove_stop_words=True)
            )
            self._opened = table

    def replace_paths(self, rows: Sequence[Row], paths: Iterable[str]) -> None:
        """Make these rows all that there is of these paths, in one commit. Raises WriteError."""
        self._replace(rows, of_paths(paths))

    def _replace(self, rows: Sequence[Row], where: str | None) -> None:
        import pyarrow as pa

        table = pa.Table.from_pylist(list(rows), schema=_schema(self.dimension))
        with _errors(self.index):
            merge = self._table.merge_insert("id").when_matched_update_all()
            merge.when_not_matched_insert_all().when_not_matched_by_source_delete(where).execute(
                table
            )

    def replace_all(self, rows: Sequence[Row]) -> None:
        """Make these rows all that there is, in one commit. Raises WriteError."""
        self._replace(rows, None)

    def upsert(self, rows: Sequence[Row]) -> None:
        """Put rows in the place of those with the same ids, in one commit. Raises WriteError."""
        import pyarrow as pa

        table = pa.Table.from_pylist(list(rows), schema=_schema(self.dimension))
        with _errors(self.index):
            merge = self._table.merge_insert("id").when_matched_update_all()
            merge.when_not_matched_insert_all().execute(table)

    def settle(self) -> None:
        """Fold new rows into the text index and, now and then, drop old versions.

        Until then full text counts words of old and new rows apart, and scores differ from those
        of a rebuild by up to a tenth.
        """
        with _errors(self.index):
            many = len(self._table.list_versions()) > COMPACT_AFTER
            self._table.optimize(cleanup_older_than=KEEP_VERSIONS if many else None)
            rows = self._table.count_rows()
            if self.dimension and rows > ANN_ROWS and not self._has_index("vector"):
                from lancedb.index import IvfFlat

                self._table.create_index("vector", config=IvfFlat(distance_type="cosine"))

    def tidy(self) -> bool:
        """Drop the versions that no reader stands on any more. False if some are too young for it."""
        with _errors(self.index):
            self._table.optimize(cleanup_older_than=KEEP_VERSIONS)
            return len(self._table.list_versions()) <= 1

    def nearest(
        self, vector: np.ndarray, limit: int, where: str | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Give row ids, uint64[n], and cosines, float32[n], of the rows nearest to a unit vector.

        In any order, and of all rows where that is as quick.
        """
        if self.pinned and where is None and self.count() <= ANN_ROWS:
            ids, vectors = self._all_vectors
            return ids, vectors @ vector
        with _errors(self.index):
            query = self._table.search(vector, vector_column_name="vector")
            query = query.distance_type("cosine").limit(limit).with_row_id(True)
            found = (query.where(where) if where else query).select(["_distance"]).to_arrow()
        return found["_rowid"].to_numpy(), 1 - found["_distance"].to_numpy()

    @cached_property
    def _all_vectors(self) -> tuple[np.ndarray, np.ndarray]:
        """The table's row ids and vectors: multiplying takes less time than asking for it (5 ms)."""
        with _errors(self.index):
            found = self._table.search().limit(None).with_row_id(True).select(["vector"]).to_arrow()
        return found["_rowid"].to_numpy().copy(), matrix(found, self.dimension).copy()

    def matches(self, text: str, limit: int, where: str | None) -> tuple[np.ndarray, np.ndarray]:
        """Give row ids, uint64[n], and BM25 scores, float32[n], of rows that match any word."""
        from lancedb.query import MatchQuery

        with _errors(self.index):
            query = self._table.search(MatchQuery(text, FULL_TEXT), query_type="fts").limit(limit)
            query = query.with_row_id(True).select(["_score"])
            found = (query.where(where) if where else query).to_arrow()
        return found["_rowid"].to_numpy(), found["_score"].to_numpy()

    def take(self, row_ids: Sequence[int]) -> list[dict[str, Any]]:
        """Give what a hit shows of these rows, in their order."""
        if not row_ids:
            return []
        with _errors(self.index):
            # in the order of the table, whatever order is asked for
            query = self._table.take_row_ids(list(row_ids)).with_row_id().select(list(_SHOWN))
            rows = {row.pop("_rowid"): row for row in query.to_list()}
        return [rows[id] for id in row_ids]

    def vectors(self, hashes: Sequence[str]) -> dict[str, np.ndarray]:
        """Give the vectors already there, by content hash: what is known is not embedded again."""
        known: dict[str, np.ndarray] = {}
        for start in range(0, len(hashes), 1000):
            where = _one_of("content_hash", hashes[start : start + 1000])
            with _errors(self.index):
                query = self._table.search().where(where).limit(None)
                found = query.select(["content_hash", "vector"]).to_arrow()
            for key, vector in zip(
                found["content_hash"].to_pylist(), matrix(found, self.dimension), strict=True
            ):
                known[key] = vector
        return known

    def rows(self, columns: Sequence[str], where: str | None = None) -> list[dict[str, Any]]:
        """Give columns of all rows, or of those a filter names."""
        with _errors(self.index):
            query = self._table.search().limit(None).select(list(columns))
            found: list[dict[str, Any]] = (query.where(where) if where else query).to_list()
            return found

    def rows_and_vectors(
        self, columns: Sequence[str], where: str
    ) -> tuple[list[dict[str, Any]], np.ndarray | None]:
        """Give columns of the rows that a filter names, by id, and their vectors, float32[n, dimension].

        `id` must be among the columns. The vectors are None in an index that has none.
        """
        wanted = [*columns, "vector"] if self.dimension else list(columns)
        with _errors(self.index):
            query = self._table.search().limit(None).where(where).select(wanted)
            found = query.to_arrow().sort_by("id")
        vectors = matrix(found, self.dimension) if self.dimension else None
        return found.select(list(columns)).to_pylist(), vectors

    def whole_rows(self, lesson_ids: Sequence[str]) -> list[Row]:
        """Give all that there is of these lessons."""
        rows: list[Row] = []
        for start in range(0, len(lesson_ids), 1000):
            where = _one_of("lesson_id", lesson_ids[start : start + 1000])
            with _errors(self.index):
                rows += self._table.search().where(where).limit(None).to_arrow().to_pylist()
        return rows

    def count(self) -> int:
        """Count the rows."""
        return self._count if self.pinned else self._counted()

    @cached_property
    def _count(self) -> int:
        return self._counted()

    def _counted(self) -> int:
        with _errors(self.index):
            return int(self._table.count_rows())

    @property
    def _table(self) -> lancedb.table.Table:
        if self._opened is None:
            with _errors(self.index):
                table = self._connect().open_table(self.table)
                if self.pinned:
                    table.checkout(table.version)
                self._opened = table
        return self._opened

    def _connect(self) -> lancedb.db.DBConnection:
        os.environ.setdefault("LANCE_LOG", "error")  # it warns on stderr about every new table
        import lancedb

        if self.exists():
            ownership.refuse_links(self.index / f"{self.table}.lance")
        # interval 0: see what other processes committed
        return lancedb.connect(self.index, read_consistency_interval=timedelta(0))

    def _has_index(self, column: str) -> bool:
        return any(column in index.columns for index in self._table.list_indices())


def below(categories: Iterable[CategoryPath]) -> str:
    """Make the filter for rows in any of these categories or below them, on the level columns."""
    tests = []
    for category in categories:
        depth = category.count("/")
        if depth < MAX_DEPTH:
            tests.append(f"array_has_any({LEVELS[depth]}, [{_quoted(category)}])")
        else:  # deeper than the columns: look at the declared ones, narrowed by the last column
            column, top = LEVELS[-1], "/".join(category.split("/")[:MAX_DEPTH])
            declared = "concat('|', array_to_string(categories, '/|'), '/')"
            tests.append(
                f"(array_has_any({column}, [{_quoted(top)}])"
                f" AND contains({declared}, {_quoted(f'|{category}/')}))"
            )
    return " OR ".join(tests)


def of_paths(paths: Iterable[str]) -> str:
    """Make the filter for the rows of these files."""
    return _one_of("path", paths)


def only_ids(ids: Iterable[str]) -> str:
    """Make the filter for rows with these ids."""
    return _one_of("id", ids)


def matrix(rows: pa.Table, dimension: int) -> np.ndarray:
    """Give the vectors of an Arrow table as float32[rows, dimension]."""
    import numpy as np

    column = rows["vector"].combine_chunks()
    return np.asarray(column.flatten(), dtype=np.float32).reshape(len(column), dimension)


def _schema(dimension: int) -> pa.Schema:
    import pyarrow as pa

    words = pa.list_(pa.string())
    moment = pa.timestamp("us", tz="UTC")
    fields = [
        pa.field("id", pa.string(), nullable=False),
        pa.field("lesson_id", pa.string(), nullable=False),
        pa.field("path", pa.string(), nullable=False),
        *(pa.field(name, pa.string()) for name in ("title", "document", "description", "link")),
        *(pa.field(name, pa.string()) for name in ("written_by", "text", FULL_TEXT, "filed_by")),
        *(pa.field(name, words) for name in ("categories", *LEVELS, "tags")),
        *(pa.field(name, words) for name in ("fires_on", "silent_on")),
        pa.field("position", pa.int32()),
        pa.field("type", pa.string()),
        pa.field("confidence", pa.int8()),
        pa.field("created_at", moment),
        pa.field("updated_at", moment),
        pa.field("author", pa.string()),
        pa.field("file_hash", pa.string()),
        pa.field("withheld", pa.string()),
        pa.field("content_hash", pa.string()),
    ]
    if dimension:
        fields.append(pa.field("vector", pa.list_(pa.float32(), dimension)))
    return pa.schema(fields)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _one_of(column: str, values: Iterable[str]) -> str:
    listed = ", ".join(map(_quoted, values))
    return f"{column} IN ({listed})" if listed else "false"


@contextmanager
def _errors(index: Path) -> Iterator[None]:
    """Turn what LanceDB raises - RuntimeError, ValueError, OSError - into our two kinds."""
    try:
        yield
    except (RuntimeError, ValueError, OSError) as error:
        said = " ".join(str(error).split())
        low = said.lower()
        for sign, what in (
            ("no space left", "the disk is full"),
            ("read-only file system", "the file system is read-only"),
            ("permission denied", "permission denied"),
        ):
            if sign in low:
                raise WriteError(
                    f"cannot write {index}: {what}", "free some space or make the folder writable"
                ) from None
        raise IndexStateError(
            f"the index at {index} is damaged: {said[:160]}", "run `lessons index --rebuild`"
        ) from error
