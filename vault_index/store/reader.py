"""A table for searches: it stays at one version, with what every search needs in memory.

A warm process keeps what a prompt needs of all rows: the vectors, which rows belong together, and what
hits show. LanceDB answers full text, and everything in a process that answers once. Rows are known by
their places in the order of their row ids, which LanceDB gives; a row id means the same row in all
versions, as a change writes another row. Nobody waits for a writer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, wraps
from typing import TYPE_CHECKING, Any, Concatenate, NamedTuple, ParamSpec, TypeVar

from vault_index.errors import VaultError
from vault_index.store.filters import WHOLE, wholes_of
from vault_index.store.lance import Place, Table, matrix
from vault_index.store.schema import LESSONS, VECTOR, Schema
from vault_index.text.words import says_nothing, split_unspaced

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

P = ParamSpec("P")
T = TypeVar("T")
MAX_KEPT_ROWS = 50_000  # of a table, that a warm process keeps: 3 kB a row with MiniLM's vectors
AT_ONCE = 64  # vectors that are compared with all of them
DIGITS = 6  # of a cosine that count
MATCHED = 50_000  # rows that full text returns, the best ones
MAX_MASKS = 16  # the last ones, as most searches have the same filters: a byte a row each
MAX_ANSWERS = 24  # of full text, the last ones: one prompt is searched for several times
FAMILY_COLUMNS = ("lesson_id", "is_whole", "taught")


@dataclass(frozen=True, slots=True)
class Kept:
    """All rows, as far as a warm process keeps them."""

    rows: pa.Table  # what hits show, in the order of the table
    order: np.ndarray  # int64[n], where the row of each place is among them
    vectors: np.ndarray | None  # float32[n, dimension], by place; None in an index without vectors
    wholes: dict[str, int]  # the places of whole lessons by their ids


class Matches(NamedTuple):
    """The rows that full text finds, the best first."""

    places: np.ndarray  # int64[n]
    scores: np.ndarray  # float32[n], BM25


class Families(NamedTuple):
    """The rows that are not whole lessons, in the order of their places."""

    places: np.ndarray  # int64[n], sorted
    wholes: np.ndarray  # int64[n], the place of the whole of each
    taught: np.ndarray  # str[n]: fires | silent | asks for a prompt, "" for a piece


def once(make: Callable[Concatenate[Reader, P], T]) -> Callable[Concatenate[Reader, P], T]:
    """Cache the result of a function for a table, as long as the table stays at its version."""

    @wraps(make)
    def kept(table: Reader, /, *args: P.args, **named: P.kwargs) -> T:
        key = (make, args, *named.items())
        if key not in table.cached:
            table.cached[key] = make(table, *args, **named)
        result: T = table.cached[key]
        return result

    return kept


class Reader(Table):
    """A table for reading, as it was when it was first asked."""

    def __init__(self, index: Place, dimension: int, schema: Schema = LESSONS) -> None:
        super().__init__(index, dimension, schema, pinned=True)
        self._masks: dict[str, np.ndarray] = {}  # the last one last
        self.cached: dict[object, Any] = {}  # see `once`
        self._kept: Kept | None = None  # see `load`
        self._answers: dict[tuple[str, str], Callable[[], Matches]] = {}  # of full text

    def load(self, *, warm: bool = False) -> None:
        """Load the data that each search needs, with `warm` for many searches.

        To look at all vectors takes LanceDB 9 ms of 2,000 rows, numpy .03; to take 18 rows 3 ms, and .1.
        """
        if warm and self._kept is None and self.count() <= MAX_KEPT_ROWS:
            self._keep()
        if self.schema.has_pieces:
            _ = self.families
        _ = self._by_time if self.schema.in_memory else self.ids

    def _keep(self) -> None:
        """Read the table once: the rows that hits show, their families and their vectors."""
        import numpy as np
        import pyarrow.compute  # noqa: F401  # takes rows; a process that answers once goes without

        shown = self.schema.shown
        also = [name for name in FAMILY_COLUMNS if self.schema.has_pieces and name not in shown]
        vectors = [VECTOR] if self.dimension else []
        rows = self.scan([*shown, *also, *vectors], ids=True)
        order = rows["_rowid"].to_numpy().argsort(kind="stable")
        self.__dict__.setdefault("columns", {"_rowid": rows["_rowid"].to_numpy()[order]})
        wholes: dict[str, int] = {}
        if self.schema.has_pieces:
            self.__dict__.setdefault("families", self._families_of(rows))
            ids = rows["lesson_id"].to_pylist()
            places = np.empty(len(order), np.int64)
            places[order] = np.arange(len(order))
            is_whole = rows["is_whole"].to_numpy()
            wholes = {ids[number]: int(places[number]) for number in np.flatnonzero(is_whole)}
        found = matrix(rows, self.dimension)[order] if self.dimension else None
        kept = rows.select([*shown, "_rowid"]).combine_chunks()  # quick to take from
        self._kept = Kept(kept, order, found, wholes)

    def count(self, where: str | None = None) -> int:
        """Count the rows, or those that a filter names."""
        return self._count if where is None else super().count(where)

    @cached_property
    def _count(self) -> int:
        return super().count()

    def revision(self) -> str:
        """Return a stamp, new after every write to the table."""
        return f"{self.index.name}@{self.version()}"

    # what is in memory, in the order of places

    @property
    def ids(self) -> np.ndarray:
        """The row ids, uint64[n], sorted."""
        ids: np.ndarray = self.columns["_rowid"]
        return ids

    @cached_property
    def columns(self) -> dict[str, np.ndarray]:
        """The columns that the schema wants in memory, and `_rowid`.

        Times are whole microseconds since 1970, int64; 0 for none.
        """
        import numpy as np

        rows = self.scan(self.schema.in_memory or self.schema.indexed[:1], ids=True)
        ids = rows.column("_rowid").to_numpy()
        order = np.argsort(ids, kind="stable")
        columns = {"_rowid": ids[order]}
        for name in self.schema.in_memory:
            values = rows.column(name).to_numpy()
            if values.dtype.kind == "M":
                values = np.where(np.isnat(values), 0, values.astype("M8[us]").astype(np.int64))
            columns[name] = values[order]
        return columns

    @cached_property
    def families(self) -> Families:
        """The rows that are pieces of long lessons or prompts, and the whole of each."""
        import numpy as np

        rows = self.scan(FAMILY_COLUMNS, ids=True)
        ids = rows["_rowid"].to_numpy()
        self.__dict__.setdefault("columns", {"_rowid": np.sort(ids)})  # all that a search needs
        return self._families_of(rows)

    def _families_of(self, rows: pa.Table) -> Families:
        import numpy as np

        places = self.ids.searchsorted(rows["_rowid"].to_numpy())
        is_whole = rows["is_whole"].to_numpy().astype(bool)
        parts = np.flatnonzero(~is_whole)
        parts = parts[np.argsort(places[parts])]
        names = rows["lesson_id"].to_pylist() if len(parts) else []
        place_of = {names[number]: places[number] for number in np.flatnonzero(is_whole) if names}
        taught = np.array(rows["taught"].to_pylist() if names else [], "U6")[parts]
        wholes = np.array([place_of[names[number]] for number in parts], np.int64)
        return Families(places[parts], wholes, taught)

    # what a search asks

    def cosines(self, vector: np.ndarray) -> np.ndarray:
        """Return the cosine of each row with a unit vector, float32[n]."""
        import numpy as np

        if self._kept is not None and self._kept.vectors is not None:
            products: np.ndarray = self._kept.vectors @ vector.astype(np.float32)
            return products
        cosines = np.zeros(len(self.ids), np.float32)
        places, found = self._nearest_in_table(vector, len(cosines))
        cosines[places] = found
        return cosines

    def nearest(self, vector: np.ndarray, limit: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the places of the rows nearest to a unit vector, int64[limit], and their cosines.

        The nearest first. Every vector is looked at.
        """
        if self._kept is None or self._kept.vectors is None:
            return self._nearest_in_table(vector, limit)
        cosines = self.cosines(vector)
        places = (-cosines).argsort(kind="stable")[: max(1, limit)]
        return places, cosines[places]

    def near(
        self, vectors: np.ndarray, least: float, limit: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield for each unit vector the rows with at least this cosine: what `nearest` returns.

        `vectors` is float32[m, dimension]. Equal cosines are in the order of their places.
        """
        import numpy as np

        kept = self._kept.vectors if self._kept is not None else None
        if kept is None:
            for vector in vectors:
                places, cosines = self._nearest_in_table(vector, limit)
                yield places[cosines >= least], cosines[cosines >= least]
            return
        for start in range(0, len(vectors), AT_ONCE):
            for cosines in vectors[start : start + AT_ONCE] @ kept.T:
                places = np.flatnonzero(cosines >= least)
                # equal vectors may differ in the last digit
                order = (-cosines[places].round(DIGITS)).argsort(kind="stable")[:limit]
                yield places[order], cosines[places[order]]

    def _nearest_in_table(self, vector: np.ndarray, limit: int) -> tuple[np.ndarray, np.ndarray]:
        found = self.nearest_rows(vector, max(1, limit))
        places = self.ids.searchsorted(found["_rowid"].to_numpy())
        return places, 1 - found["_distance"].to_numpy()

    def wholes(self, *columns: str) -> list[dict[str, Any]]:
        """Return columns, of those that hits show, of all whole lessons."""
        if self._kept is None:
            return self.rows(columns, WHOLE)
        import numpy as np

        kept = self._kept.rows
        some = kept.select(columns).take(np.flatnonzero(kept["is_whole"].to_numpy()))
        named: list[dict[str, Any]] = some.to_pylist()
        return named

    def shown_of(self, lesson_ids: Sequence[str]) -> list[dict[str, Any]]:
        """Return the columns that hits show of whole lessons, by their ids."""
        kept = self._kept
        if kept is None:
            return self.rows(self.schema.shown, wholes_of(lesson_ids))
        return self.take([kept.wholes[id] for id in lesson_ids if id in kept.wholes])

    def of_lessons(self, lesson_ids: Sequence[str]) -> dict[str, np.ndarray]:
        """Return the vectors of whole lessons by their ids, float32[dimension], where they have one."""
        if not (self.dimension and lesson_ids):
            return {}
        kept = self._kept
        if kept is not None and kept.vectors is not None:
            vectors = {id: kept.vectors[kept.wholes[id]] for id in lesson_ids if id in kept.wholes}
        else:
            rows = self.scan(["lesson_id", VECTOR], wholes_of(lesson_ids))
            pairs = zip(rows["lesson_id"].to_pylist(), matrix(rows, self.dimension), strict=True)
            vectors = dict(pairs)
        return {id: vector for id, vector in vectors.items() if vector.any()}

    def mask(self, where: str | None) -> np.ndarray | None:
        """Return which rows a filter names, bool[n]; None for no filter. Asking LanceDB takes longer."""
        import numpy as np

        if where is None:
            return None
        mask = self._masks.pop(where, None)
        if mask is None:
            mask = np.zeros(len(self.ids), bool)
            mask[self.places(where)] = True
        self._masks[where] = mask
        while len(self._masks) > MAX_MASKS:
            del self._masks[next(iter(self._masks))]
        return mask

    def places(self, where: str) -> np.ndarray:
        """Return the places of the rows that a filter names, int64[n]."""
        ids = self.scan(self.schema.indexed[:1], where, ids=True)["_rowid"].to_numpy()
        places: np.ndarray = self.ids.searchsorted(ids)
        return places

    def look_ahead(self, query: str, names: Iterable[str] = ()) -> None:
        """Have LanceDB look for the words of a query and for identifiers, beside other work."""
        self._ask(_telling(query), self.schema.full_text)
        for name in names:
            self._ask(name, self.schema.exact_text)

    def matches(self, text: str, where: str | None = None) -> Matches:
        """Return the rows that match any word of a text.

        A word that a text repeats counts once: a pasted log says little more for its length.
        """
        # LanceDB looks at all rows for a filter, which takes ten times as long
        return self._within(where, self._found(_telling(text), self.schema.full_text))

    def identified(self, name: str, where: str | None) -> np.ndarray:
        """Return the places, int64[n], of lessons that have an identifier, which is folded."""
        return self._within(where, self._found(name, self.schema.exact_text)).places

    def _within(self, where: str | None, found: Matches) -> Matches:
        mask = self.mask(where)
        if mask is None:
            return found
        inside = mask[found.places]
        return Matches(found.places[inside], found.scores[inside])

    def _found(self, text: str, column: str) -> Matches:
        try:
            return self._ask(text, column)()
        except VaultError:  # the next one asks again
            self._answers.pop((column, text), None)
            raise

    def _ask(self, text: str, column: str) -> Callable[[], Matches]:
        answer = self._answers.get((column, text))
        if answer is None:
            rows = self.begin_bm25(text, column, MATCHED)
            answer = cache(lambda: self._best_first(rows()))
            kept = [*self._answers.items()][1 - MAX_ANSWERS :]  # copied: other threads add theirs
            self._answers = {**dict(kept), (column, text): answer}
        return answer

    def _best_first(self, rows: pa.Table) -> Matches:
        scores = rows["_score"].to_numpy()
        order = (-scores).argsort(kind="stable")
        return Matches(self.ids.searchsorted(rows["_rowid"].to_numpy())[order], scores[order])

    def take(
        self, places: np.ndarray | Sequence[int], columns: Sequence[str] = ()
    ) -> list[dict[str, Any]]:
        """Return columns of these rows, in their order: at least those, else all that a hit shows."""
        if not len(places):
            return []
        ids = self.ids[places].tolist()
        if self._kept is not None:
            records = self._kept.rows.take(self._kept.order[places]).to_pylist()
        else:  # in the order of the table
            records = self.rows_by_id(ids, columns or self.schema.shown).to_pylist()
        rows = {row.pop("_rowid"): row for row in records}
        return [rows[id] for id in ids]

    def by_time(self, where: str | None) -> np.ndarray:
        """Return the places of the first rows of records, int64[n], oldest first."""
        mask = self.mask(where)
        return self._by_time if mask is None else self._by_time[mask[self._by_time]]

    @cached_property
    def _by_time(self) -> np.ndarray:
        import numpy as np

        columns = self.columns
        firsts = np.flatnonzero(columns["position"] == 0)
        order: np.ndarray = firsts[np.lexsort((columns["place"][firsts], columns["at"][firsts]))]
        return order

    def column(self, name: str, where: str | None = None) -> pa.ChunkedArray:
        return self.scan([name], where)[name]

    @once
    def tally(self, column: str, where: str | None = None) -> dict[str, int]:
        """Count the rows with each value of a column of texts; a list counts for each of its values.

        It is done once: of 100,000 rows in half a second.
        """
        values = self.column(column, where).combine_chunks()
        counted = (values.flatten() if values.type.num_fields else values).value_counts()
        texts, counts = (counted.field(name).to_pylist() for name in ("values", "counts"))
        return dict(zip(texts, counts, strict=True))


def _telling(text: str) -> str:
    """Return the words of a text that say something, each once; all of them if none does."""
    words = dict.fromkeys(split_unspaced(text).lower().split())
    return " ".join(word for word in words if not says_nothing(word)) or " ".join(words)
