"""The LanceDB tables: rows in, nearest and full-text matches out.

In each index folder are the tables `lessons`, with a row per passage, `skills`, with a row per
skill, and `catalog`, with a row per document and category, all of one schema. An index without an
embedder has no vector column. What goes to LanceDB, and how, is in `lance`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

from vault_index import ownership
from vault_index.categories import MAX_DEPTH, CategoryPath
from vault_index.errors import IndexStateError, WriteError
from vault_index.lance import Door, Table

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

T = TypeVar("T")

LESSONS, SKILLS, CATALOG = "lessons", "skills", "catalog"
FULL_TEXT = "fulltext"  # the column that full text searches: categories, title, title, text
# A reader may stand on an old version, but not for longer than a query takes: it opens the table
# anew when the manifest has changed.
KEEP_VERSIONS = timedelta(minutes=2)
COMPACT_AFTER = 20  # versions; LanceDB's advice for when to optimize
ANN_ROWS = 50_000  # below that a flat scan is as fast (14 ms at 10,000 rows) and exact
KEPT_ROWS = 10_000  # that a watcher keeps in memory: 15 MB
LEVELS = tuple(f"category_l{depth}" for depth in range(MAX_DEPTH))
_FAMILY = ("lesson_id", "is_whole")
_SHOWN = (
    *("id", "lesson_id", "path", "title", "document", "link", "text", "categories", "tags"),
    *("position", "type", "confidence", "created_at", "updated_at", "author", "file_hash"),
    *("withheld", "filed_by"),
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
    fulltext: str  # "" for the pieces of a long lesson: its whole has their words
    is_whole: bool  # False for a piece of a long lesson
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
        self._table = Table(index, table, pinned=pinned)
        self._is_checked = False  # that no link in the table leads elsewhere

    def exists(self) -> bool:
        """Tell whether the table's folder is there, without opening it."""
        return (self.index / f"{self.table}.lance" / "_versions").is_dir()

    def create(self) -> None:
        """Make the empty table with its indexes. Raises WriteError."""
        with _errors(self.index):
            self._table.create(_schema(self.dimension))
        # without a key two processes that insert the same new ids duplicate them
        single = ("id", "lesson_id", "path", "content_hash")
        self._ask(lambda door: door.prepare("id", FULL_TEXT, single, LEVELS))

    def replace_paths(self, rows: Sequence[Row], paths: Iterable[str]) -> None:
        """Make these rows all that there is of these paths, in one commit. Raises WriteError."""
        self._merge(rows, delete=True, where=of_paths(paths))

    def replace_all(self, rows: Sequence[Row]) -> None:
        """Make these rows all that there is, in one commit. Raises WriteError."""
        self._merge(rows, delete=True)

    def upsert(self, rows: Sequence[Row]) -> None:
        """Put rows in the place of those with the same ids, in one commit. Raises WriteError."""
        self._merge(rows, delete=False)

    def _merge(self, rows: Sequence[Row], *, delete: bool, where: str | None = None) -> None:
        import pyarrow as pa

        table = pa.Table.from_pylist(list(rows), schema=_schema(self.dimension))
        self._ask(lambda door: door.merge(table, "id", delete, where))

    def settle(self) -> None:
        """Fold new rows into the text index and, now and then, drop old versions.

        Until then full text counts words of old and new rows apart, and scores differ from those
        of a rebuild by up to a tenth.
        """
        many = self._ask(lambda door: door.count_versions()) > COMPACT_AFTER
        self._ask(lambda door: door.optimize(KEEP_VERSIONS if many else None))
        large = self.dimension and self._counted() > ANN_ROWS
        if large and "vector" not in self._ask(lambda door: door.indexed()):
            self._ask(lambda door: door.index_vectors("vector"))

    def tidy(self) -> bool:
        """Drop the versions that no reader stands on any more. False if some are too young for it."""
        self._ask(lambda door: door.optimize(KEEP_VERSIONS))
        return self._ask(lambda door: door.count_versions()) <= 1

    def nearest(
        self, vector: np.ndarray, limit: int, where: str | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Give row ids, uint64[n], and cosines, float32[n], of the rows nearest to a unit vector.

        In any order, and of all rows where that is as quick.
        """
        if self.pinned and where is None and self.count() <= ANN_ROWS:
            ids, vectors = self._all_vectors
            return ids, vectors @ vector
        found = self._ask(lambda door: door.nearest(vector, limit, where))
        return found["_rowid"].to_numpy(), 1 - found["_distance"].to_numpy()

    def load(self, *, rows: bool = False) -> None:
        """Load what each search needs, if this is a reader's; with `rows` also what hits show.

        That takes 1.5 kB a row, and saves a third of a search's processor time.
        """
        if not self.pinned or self.count() > ANN_ROWS:
            return
        if self.dimension:
            _ = self._all_vectors
        if rows and self.count() <= KEPT_ROWS:
            _ = self._all_rows

    @cached_property
    def _all_rows(self) -> tuple[np.ndarray, np.ndarray, pa.Table]:
        """The table's row ids, sorted, where each is in the third, and what hits show of them."""
        import numpy as np

        found = self._scan(_SHOWN, ids=True)
        ids = found["_rowid"].to_numpy()
        order = np.argsort(ids)
        return ids[order], order, found

    @cached_property
    def _all_vectors(self) -> tuple[np.ndarray, np.ndarray]:
        """The table's row ids and vectors: multiplying takes less time than asking for it (5 ms)."""
        found = self._scan(["vector", *_FAMILY], ids=True)
        self.__dict__["families"] = _families(found)
        return found["_rowid"].to_numpy().copy(), matrix(found, self.dimension).copy()

    @cached_property
    def families(self) -> tuple[np.ndarray, np.ndarray]:
        """Row ids, uint64[n], of the pieces of long lessons, sorted, and of the whole of each."""
        return _families(self._scan(_FAMILY, ids=True))

    def matches(self, text: str, limit: int, where: str | None) -> tuple[np.ndarray, np.ndarray]:
        """Give row ids, uint64[n], and BM25 scores, float32[n], of rows that match any word."""
        found = self._ask(lambda door: door.matches(text, FULL_TEXT, limit, where))
        return found["_rowid"].to_numpy(), found["_score"].to_numpy()

    def take(self, row_ids: Sequence[int]) -> list[dict[str, Any]]:
        """Give what a hit shows of these rows, in their order."""
        if not row_ids:
            return []
        if "_all_rows" in self.__dict__:
            ids, places, kept = self._all_rows
            parts = [kept.slice(at, 1) for at in places[ids.searchsorted(row_ids)].tolist()]
            taken = [row for part in parts for row in part.to_pylist()]
        else:  # in the order of the table
            taken = self._ask(lambda door: door.take(row_ids, _SHOWN)).to_pylist()
        rows = {row.pop("_rowid"): row for row in taken}
        return [rows[id] for id in row_ids]

    def some_row(self) -> dict[str, Any] | None:
        """Return what a hit shows of some row; None in an empty table."""
        if self.pinned and self.dimension and self.count() <= ANN_ROWS:
            ids = self._all_vectors[0]
        else:
            ids = self._scan(["id"], ids=True)["_rowid"].to_numpy()
        return self.take(ids[:1].tolist())[0] if len(ids) else None

    def vectors(self, hashes: Sequence[str]) -> dict[str, np.ndarray]:
        """Give the vectors already there, by content hash: what is known is not embedded again."""
        known: dict[str, np.ndarray] = {}
        for start in range(0, len(hashes), 1000):
            where = _one_of("content_hash", hashes[start : start + 1000])
            found = self._scan(["content_hash", "vector"], where)
            for key, vector in zip(
                found["content_hash"].to_pylist(), matrix(found, self.dimension), strict=True
            ):
                known[key] = vector
        return known

    def rows(self, columns: Sequence[str], where: str | None = None) -> list[dict[str, Any]]:
        """Give columns of all rows, or of those a filter names."""
        found: list[dict[str, Any]] = self._scan(columns, where).to_pylist()
        return found

    def rows_and_vectors(
        self, columns: Sequence[str], where: str
    ) -> tuple[list[dict[str, Any]], np.ndarray | None]:
        """Give columns of the rows that a filter names, by id, and their vectors, float32[n, dimension].

        `id` must be among the columns. The vectors are None in an index that has none.
        """
        wanted = [*columns, "vector"] if self.dimension else list(columns)
        found = self._scan(wanted, where)
        rows = found.select(list(columns)).to_pylist()
        order = sorted(range(len(rows)), key=lambda at: str(rows[at]["id"]))
        vectors = matrix(found, self.dimension)[order] if self.dimension else None
        return [rows[at] for at in order], vectors

    def whole_rows(self, lesson_ids: Sequence[str]) -> list[Row]:
        """Give all that there is of these lessons."""
        rows: list[Row] = []
        for start in range(0, len(lesson_ids), 1000):
            where = of_lessons(lesson_ids[start : start + 1000])
            rows += self._scan(None, where).to_pylist()
        return rows

    def count(self) -> int:
        """Count the rows."""
        return self._count if self.pinned else self._counted()

    @cached_property
    def _count(self) -> int:
        return self._counted()

    def _counted(self) -> int:
        return self._ask(lambda door: door.count())

    def _scan(
        self, columns: Sequence[str] | None, where: str | None = None, *, ids: bool = False
    ) -> pa.Table:
        return self._ask(lambda door: door.scan(columns, where, ids))

    def _ask(self, question: Callable[[Door], T]) -> T:
        with _errors(self.index):
            if not self._is_checked:
                if self.exists():
                    ownership.refuse_links(self.index / f"{self.table}.lance")
                self._is_checked = True
            return self._table.ask(question)


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


def of_lessons(lesson_ids: Iterable[str]) -> str:
    """Return the filter for the rows of these lessons."""
    return _one_of("lesson_id", lesson_ids)


def only_ids(ids: Iterable[str]) -> str:
    """Make the filter for rows with these ids."""
    return _one_of("id", ids)


def _families(rows: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    import numpy as np

    ids, whole = rows["_rowid"].to_numpy(), rows["is_whole"].to_numpy().astype(bool)
    pieces = np.flatnonzero(~whole)
    if not len(pieces):
        return ids[:0].copy(), ids[:0].copy()
    names = rows["lesson_id"].to_pylist()
    id_of = {names[at]: ids[at] for at in np.flatnonzero(whole)}
    pieces = pieces[np.argsort(ids[pieces])]
    return ids[pieces].copy(), np.array([id_of[names[at]] for at in pieces], ids.dtype)


def matrix(rows: pa.Table, dimension: int) -> np.ndarray:
    """Give the vectors of an Arrow table as float32[rows, dimension]."""
    import numpy as np

    if not len(rows):
        return np.empty((0, dimension), np.float32)
    # not flatten(): that loads pyarrow.compute, which takes longer than all of a query
    pieces = [
        chunk.values.slice(chunk.offset * dimension, len(chunk) * dimension).to_numpy()
        for chunk in rows["vector"].chunks
    ]
    return np.concatenate(pieces, dtype=np.float32).reshape(len(rows), dimension)


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
        pa.field("is_whole", pa.bool_()),
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
