"""The LanceDB tables: rows in, nearest and full-text matches out.

In each index folder are the tables `lessons`, with a row per passage, `skills`, with a row per
skill, and `documents`, with a row per document and category; their columns are in `schema`. An index
without an embedder has no vector column. What goes to LanceDB, and how, is in `lance`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from datetime import timedelta
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from vault_index.errors import IndexStateError, WriteError
from vault_index.store import ownership
from vault_index.store.filters import ROWS, any_of, of_lessons, of_paths
from vault_index.store.lance import Door, LanceTable
from vault_index.store.schema import LESSONS, VECTOR, LessonRow, Schema

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from vault_index.store.schema import DocumentRow, JournalRow, SkillRow

    Pair = tuple[np.ndarray, np.ndarray]
    Ask = Callable[["Table", str, int, str | None], Pair]

# Vectors in a third of the memory, for tables too large to multiply all of their vectors.
#
# The first 128 principal components of unit vectors keep nearly all of what sets them apart: of
# 250,000
# vectors of MiniLM in 384 dimensions the nearest ten are among the nearest 500 by components for
# each of 60
# questions (of 64 components: .98). That takes 12 ms and 0.5 kB a row; all of the vectors take 1.5.
# Who asks compares the nearest by components once more by their vectors, so that scores are exact.

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


T = TypeVar("T")

# A reader uses an old version for no longer than a query: a changed manifest has it open the table.
KEEP_VERSIONS = timedelta(minutes=2)
COMPACT_AFTER = 20  # versions; LanceDB's advice for when to optimize
ANN_ROWS = 50_000  # below that a flat scan is as fast (14 ms at 10,000 rows) and exact
HALVES_ROWS = 200_000  # of lessons, whose vectors are also kept at half precision: 0.8 kB each
KEPT_ROWS = 10_000  # that a watcher keeps in memory: 15 MB
KEPT_FILTERS = 16  # whose rows a reader remembers: 80 kB each, 0.8 MB among 100,000 rows
MANY = 0.5  # of all rows: a filter that keeps so many is looked at after full text, not in it
MAX_DAMAGE_CHARS = 160  # of what LanceDB says of an index, without its path
_AT_ONCE = 1000  # values in one filter
FAMILY_COLUMNS = ("lesson_id", "is_whole", "taught")


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


def _keep_latest(ask: Ask) -> Ask:
    """Keep the latest answer of a table that stays at its version."""

    @wraps(ask)
    def answer(table: Table, text: str, limit: int, where: str | None) -> Pair:
        asked = text, limit, where
        last = table.latest  # read once: other threads may replace it
        if last is None or last[0] != asked or not table.pinned:
            table.latest = last = asked, ask(table, text, limit, where)
        return last[1]

    return answer


class Table:
    """One table of an index folder. `dimension` 0 means no vectors.

    `pinned` is for readers: such a table stays at the version that it had when it was first asked.
    Row ids keep their meaning then, whoever writes meanwhile, and nobody waits.
    """

    def __init__(
        self, index: Path, dimension: int, schema: Schema = LESSONS, *, pinned: bool = False
    ) -> None:
        self.index = index
        self.schema = schema
        self.dimension = dimension
        self.pinned = pinned
        self._folder = index / f"{schema.table}.lance"
        self._table = LanceTable(index, schema.table, pinned=pinned)
        self._places: dict[str, np.ndarray] = {}  # see `_positions`
        self._totals: dict[str, pa.Array] = {}  # of this version: see `_once`
        self.latest: tuple[tuple[str, int, str | None], Pair] | None = None
        self._is_checked = False  # that no link in the table leads elsewhere

    def exists(self) -> bool:
        """Whether the table's folder is there, without opening it."""
        return (self._folder / "_versions").is_dir()

    def create(self) -> None:
        """Make the empty table with its indexes. Raises WriteError."""
        schema = self.schema
        with lance_errors(self.index):
            self._table.create(schema.arrow(self.dimension))
        # without a key two processes that insert the same new ids duplicate them
        self._ask(
            lambda door: door.prepare(
                "id",
                (schema.full_text, schema.exact_text),
                schema.indexed,
                schema.indexed_lists,
            )
        )

    def replace(self, rows: Sequence[LessonRow | JournalRow], paths: Iterable[str]) -> None:
        """Make these rows the only ones of these paths, in one commit. Raises WriteError."""
        self._merge(rows, delete=True, where=of_paths(paths))

    def replace_all(self, rows: Sequence[LessonRow | JournalRow | SkillRow | DocumentRow]) -> None:
        """Make these rows the only ones, in one commit. Raises WriteError."""
        self._merge(rows, delete=True)

    def upsert(self, rows: Sequence[LessonRow | JournalRow]) -> None:
        """Put rows in the place of those with the same ids, in one commit. Raises WriteError."""
        self._merge(rows, delete=False)

    def delete(self, where: str) -> None:
        """Take out the rows that a filter names, in one commit. Raises WriteError."""
        self._ask(lambda door: door.delete(where))

    def _merge(
        self,
        rows: Sequence[LessonRow | JournalRow | SkillRow | DocumentRow],
        *,
        delete: bool,
        where: str | None = None,
    ) -> None:
        import pyarrow as pa

        table = pa.Table.from_pylist(list(rows), schema=self.schema.arrow(self.dimension))
        self._ask(lambda door: door.merge(table, "id", delete, where))

    def optimize(self) -> None:
        """Fold new rows into the text index and, now and then, drop old versions.

        Until then full text counts words of old and new rows apart, and scores differ from those
        of a rebuild by up to a tenth.
        """
        self.fold()
        large = self.dimension and self._counted() > ANN_ROWS
        if large and VECTOR not in self._ask(lambda door: door.indexed()):
            self._ask(lambda door: door.index_vectors(VECTOR))

    def fold(self) -> None:
        """Fold new rows into the indexes, and now and then drop old versions; no index of vectors."""
        many = self._ask(lambda door: door.count_versions()) > COMPACT_AFTER
        self._ask(lambda door: door.optimize(KEEP_VERSIONS if many else None))

    def tidy(self) -> bool:
        """Drop the versions that no reader uses any more. False if some are too young for it."""
        self._ask(lambda door: door.optimize(KEEP_VERSIONS))
        return self._ask(lambda door: door.count_versions()) <= 1

    def nearest(self, vector: np.ndarray, limit: int, where: str | None) -> Pair:
        """Return row ids, uint64[n], and cosines, float32[n], of the rows nearest to a unit vector.

        In any order, and of all rows where that is as quick. Cosines are exact.
        """
        if self.pinned and where is None and self.count() <= ANN_ROWS:
            ids, vectors = self._all_vectors
            return ids, vectors @ vector
        if where is not None and "_all_vectors" in self.__dict__:  # a reader that stays
            ids, vectors = self._all_vectors
            places = self._positions(where, ids)
            return ids[places], (vectors @ vector)[places]
        if self.pinned and (where is None or "_compact" in self.__dict__):
            ids, compact = self._compact
            among = None if where is None else self._positions(where, ids)
            ids = ids[compact.nearest(vector, limit, among)]
            return ids, self.cosines(ids, vector)
        rows = self._ask(lambda door: door.nearest(vector, limit, where))
        return rows["_rowid"].to_numpy(), 1 - rows["_distance"].to_numpy()

    def _positions(self, where: str, ids: np.ndarray) -> np.ndarray:
        """Return which of the row ids of all rows a filter keeps; the last filters are remembered.

        Asking LanceDB for the nearest of a filter takes four times as long as both. `ids` are those
        of `_all_vectors` or `_compact`: a reader that stays has one of them.
        """
        import numpy as np

        places = self._places.get(where)
        if places is None:
            rows = self._scan(["id"], where, ids=True)
            places = np.flatnonzero(np.isin(ids, rows["_rowid"].to_numpy()))
            if len(self._places) >= KEPT_FILTERS:
                self._places.clear()
            self._places[where] = places
        return places

    @property
    def is_large(self) -> bool:
        """Whether it has too many rows to keep all of their vectors in memory."""
        return self.count() > ANN_ROWS

    def cosines(self, row_ids: np.ndarray, vector: np.ndarray) -> np.ndarray:
        """Return the cosine of each of these rows with a unit vector, float32[n]."""
        if "_compact" in self.__dict__:
            ids, compact = self._compact
            near = compact.cosines(ids.searchsorted(row_ids), vector)
            if near is not None:
                return near
        cosines: np.ndarray = self._vectors_of(row_ids) @ vector
        return cosines

    @cached_property
    def _compact(self) -> tuple[np.ndarray, Compact]:
        return self._read_compact()

    def _read_compact(self) -> tuple[np.ndarray, Compact]:
        """The table's row ids, sorted, and the vectors of these rows in fewer numbers."""
        import numpy as np

        ids = np.sort(self._scan(["id"], ids=True)["_rowid"].to_numpy())
        sample = self._vectors_of(ids[:: max(1, len(ids) // SAMPLE)])
        with_halves = self.schema.has_pieces and len(ids) <= HALVES_ROWS
        compact = Compact(sample, len(ids), with_halves=with_halves)
        with lance_errors(self.index):
            for batch in self._ask(lambda door: door.batches([VECTOR])):
                vectors = batch.column(VECTOR).values.to_numpy().reshape(-1, self.dimension)
                compact.put(np.searchsorted(ids, batch.column("_rowid").to_numpy()), vectors)
        return ids, compact

    def _vectors_of(self, row_ids: np.ndarray) -> np.ndarray:
        """Return the vectors of rows, float32[n, dimension], in their order."""
        import numpy as np

        if not len(row_ids):
            return np.empty((0, self.dimension), np.float32)
        rows = self._ask(lambda door: door.take(row_ids.tolist(), [VECTOR]))
        order = np.argsort(rows["_rowid"].to_numpy())
        at = np.searchsorted(rows["_rowid"].to_numpy(), row_ids, sorter=order)
        taken: np.ndarray = matrix(rows, self.dimension)[order[at]]
        return taken

    def load(self, *, rows: bool = False) -> None:
        """Load what each search needs, if this is a reader's; with `rows` also what hits show.

        That takes 1.5 kB a row, and saves a third of a search's processor time.
        """
        if self.pinned and self.is_large and self.dimension:
            _ = self._compact
        if not self.pinned or self.is_large:
            return
        if self.dimension:
            _ = self._all_vectors
        if rows and self.count() <= KEPT_ROWS:
            _ = self._all_rows

    @cached_property
    def _all_rows(self) -> tuple[np.ndarray, np.ndarray, pa.Table]:
        """The table's row ids, sorted; the place of each in the third; what hits show of all rows."""
        import numpy as np

        rows = self._scan(self.schema.shown, ids=True)
        ids = rows["_rowid"].to_numpy()
        order = np.argsort(ids)
        return ids[order], order, rows

    @cached_property
    def _all_vectors(self) -> Pair:
        """The table's row ids and vectors: multiplying takes less time than asking for it (5 ms)."""
        family = FAMILY_COLUMNS if self.schema.has_pieces else ()
        rows = self._scan([VECTOR, *family], ids=True)
        if family:
            self.__dict__["families"] = _families_of(rows)
        return rows["_rowid"].to_numpy().copy(), matrix(rows, self.dimension).copy()

    @cached_property
    def families(self) -> Families:
        """The rows that are pieces of long lessons or taught prompts, and the whole of each."""
        if not self.schema.has_pieces:
            return _no_families()
        return _families_of(self._scan(FAMILY_COLUMNS, ids=True))

    @_keep_latest
    def matches(self, text: str, limit: int, where: str | None) -> Pair:
        """Return row ids, uint64[n], and BM25 scores, float32[n], of rows that match any word."""
        import numpy as np

        kept = self._rows_matching(where) if where is not None else None
        within = where if kept is None else None
        rows = self._ask(lambda door: door.matches(text, self.schema.full_text, limit, within))
        ids, scores = rows["_rowid"].to_numpy(), rows["_score"].to_numpy()
        if kept is None:
            return ids, scores
        inside = kept[np.minimum(kept.searchsorted(ids), len(kept) - 1)] == ids
        return ids[inside], scores[inside]

    def identified(self, name: str, limit: int, where: str | None) -> np.ndarray:
        """Return the row ids, uint64[n], of lessons that have an identifier, which is folded."""
        column = self.schema.exact_text
        rows = self._ask(lambda door: door.matches(name, column, limit, where))
        ids: np.ndarray = rows["_rowid"].to_numpy()
        return ids

    def count_wholes(self) -> int:
        """Count the rows that are no pieces and no taught prompts."""
        return self.count() - len(self.families.ids)

    def _rows_matching(self, where: str) -> np.ndarray | None:
        """Return the row ids that a filter keeps, sorted, if a reader that stays finds it keeps many.

        Full text with a filter takes twice as long among 100,000 rows as without.
        """
        if "_compact" not in self.__dict__ or where.startswith(ROWS):
            return None
        ids, _ = self._compact
        places = self._positions(where, ids)
        return ids[places] if len(places) > MANY * len(ids) else None

    def take(self, row_ids: Sequence[int]) -> list[dict[str, Any]]:
        """Return what a hit shows of these rows, in their order."""
        if not row_ids:
            return []
        if "_all_rows" in self.__dict__:
            ids, places, kept = self._all_rows
            parts = [kept.slice(at, 1) for at in places[ids.searchsorted(row_ids)].tolist()]
            taken = [row for part in parts for row in part.to_pylist()]
        else:  # in the order of the table
            taken = self._ask(lambda door: door.take(row_ids, self.schema.shown)).to_pylist()
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
        """Return the vectors that rows have already, by content hash: float32[dimension] each."""
        vectors: dict[str, np.ndarray] = {}
        for start in range(0, len(hashes), _AT_ONCE):
            where = any_of("content_hash", hashes[start : start + _AT_ONCE])
            rows = self._scan(["content_hash", VECTOR], where)
            keys = rows["content_hash"].to_pylist()
            vectors.update(zip(keys, matrix(rows, self.dimension), strict=True))
        return vectors

    def row_ids(self, where: str) -> np.ndarray:
        """Return the row ids of the rows that a filter names, uint64[n]."""
        ids: np.ndarray = self._scan(["id"], where, ids=True)["_rowid"].to_numpy()
        return ids

    def rows(self, columns: Sequence[str], where: str | None = None) -> list[dict[str, Any]]:
        """Return columns of all rows, or of those a filter names."""
        rows: list[dict[str, Any]] = self._scan(columns, where).to_pylist()
        return rows

    def version(self) -> str:
        """Return what differs after every write to the table: the version that this reads."""
        return f"{self.index.name}@{self._ask(lambda door: door.version())}"

    def column(self, name: str, where: str | None = None) -> pa.ChunkedArray:
        """Return a column of all rows, or of those a filter names."""
        return self._scan([name], where)[name]

    def tally(self, column: str, where: str | None = None) -> dict[str, int]:
        """Count the rows with each value of a column of texts; a list counts for each of its values."""

        def count() -> pa.Array:
            values = self.column(column, where).combine_chunks()
            return (values.flatten() if values.type.num_fields else values).value_counts()

        counted = self._once(f"tally {column} {where}", count)
        return {each["values"]: each["counts"] for each in counted.to_pylist()}

    def values(self, column: str, where: str | None = None) -> list[str]:
        """Return the values of a column of texts, sorted."""

        def scan() -> pa.Array:
            import pyarrow as pa

            return pa.array(sorted(self.column(column, where).to_pylist()), pa.string())

        texts: list[str] = self._once(f"values {column} {where}", scan).to_pylist()
        return texts

    def _once(self, name: str, make: Callable[[], pa.Array]) -> pa.Array:
        """Return a total; a reader's is made once: of 100,000 rows in half a second."""
        made = self._totals.get(name)
        if made is None:
            made = make()
            if self.pinned:
                self._totals[name] = made
        return made

    def rows_and_vectors(
        self, columns: Sequence[str], where: str | None = None
    ) -> tuple[list[dict[str, Any]], np.ndarray | None]:
        """Return what `rows` does, sorted by id, and the rows' vectors, float32[n, dimension].

        `id` must be among the columns. The vectors are None in an index that has none.
        """
        wanted = [*columns, VECTOR] if self.dimension else list(columns)
        scanned = self._scan(wanted, where)
        rows = scanned.select(list(columns)).to_pylist()
        order = sorted(range(len(rows)), key=lambda at: str(rows[at]["id"]))
        vectors = matrix(scanned, self.dimension)[order] if self.dimension else None
        return [rows[at] for at in order], vectors

    def rows_of_lessons(self, lesson_ids: Sequence[str]) -> list[LessonRow]:
        """Return all rows of these lessons, with all columns."""
        rows: list[LessonRow] = []
        for start in range(0, len(lesson_ids), _AT_ONCE):
            where = of_lessons(lesson_ids[start : start + _AT_ONCE])
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
        with lance_errors(self.index):
            if not self._is_checked:
                if self.exists():
                    ownership.refuse_links(self._folder)
                self._is_checked = True
            return self._table.ask(question)


def _families_of(rows: pa.Table) -> Families:
    """Return the families of a table's rows, of which it has the row ids and `FAMILY_COLUMNS`."""
    import numpy as np

    ids, whole = rows["_rowid"].to_numpy(), rows["is_whole"].to_numpy().astype(bool)
    parts = np.flatnonzero(~whole)
    if not len(parts):
        return _no_families()
    names = rows["lesson_id"].to_pylist()
    id_of = {names[at]: ids[at] for at in np.flatnonzero(whole)}
    parts = parts[np.argsort(ids[parts])]
    taught = np.array(rows["taught"].to_pylist(), "U6")[parts]
    return Families(ids[parts], np.array([id_of[names[at]] for at in parts], ids.dtype), taught)


def _no_families() -> Families:
    """Return what a table without pieces and taught prompts has."""
    import numpy as np

    return Families(np.empty(0, np.uint64), np.empty(0, np.uint64), np.empty(0, "U6"))


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


@contextmanager
def lance_errors(index: Path) -> Iterator[None]:
    """Turn the errors of LanceDB - RuntimeError, ValueError, OSError - into our two kinds."""
    try:
        yield
    except (RuntimeError, ValueError, OSError) as error:
        message = " ".join(str(error).split())
        for sign, problem in (
            ("no space left", "the disk is full"),
            ("read-only file system", "the file system is read-only"),
            ("permission denied", "permission denied"),
        ):
            if sign in message.lower():
                raise WriteError(
                    f"cannot write {index}: {problem}",
                    "free some space or make the folder writable",
                ) from None
        raise IndexStateError(
            f"the index at {index} is damaged: {_damage(error, index)}",
            "run `lessons index --rebuild`",
        ) from error


def _damage(error: Exception, index: Path) -> str:
    """Return an error in a line without the path of the index, which may be longer than all the rest."""
    said = (error.strerror if isinstance(error, OSError) else None) or str(error)
    place = str(index).strip("/")  # LanceDB names a file without the first slash, too
    for name in (f"file:///{place}/", f"/{place}/", f"{place}/", f"/{place}"):
        said = said.replace(name, "")
    return " ".join(said.split())[:MAX_DAMAGE_CHARS]
