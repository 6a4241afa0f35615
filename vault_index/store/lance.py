"""LanceDB: tables through its compiled module, called as LanceDB 0.40's own Python calls it.

The module loads in 10 ms, the package around it in 1 to 2.5 s: longer than a hook may take on two busy
cores. The module is not documented, so `pyproject.toml` pins its releases, and tests compare its answers
with the package's.
"""

from __future__ import annotations

import errno
import os
import random
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial, wraps
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from vault_index import native
from vault_index.errors import (
    NOT_PUBLISHED,
    IndexStateError,
    StoreError,
    VaultError,
    WriteError,
    hint_for,
    named_in,
    unreadable,
)
from vault_index.hotpath import index_files
from vault_index.native import Chain, NotUnderstood, Pending, wait
from vault_index.store import ownership
from vault_index.store.filters import some_of
from vault_index.store.schema import KEY, LESSONS, VECTOR, LessonRow, Schema

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

P = ParamSpec("P")
T = TypeVar("T")

TRIES, TRY_SECONDS = 8, 1.0  # for what two publishers do at once
_PREEMPTED = "Retryable commit conflict"
MAX_WORD = 100  # bytes of a word that is indexed whole
MAX_DAMAGE_CHARS = 160  # of what LanceDB says of an index, without its path
# of the field that is the key: what `set_unenforced_primary_key` would write
_IS_KEY = "lance-schema:unenforced-primary-key:position"
_ALWAYS = 0.0  # seconds: see what other processes committed
# raised where LanceDB's private API changed
_MISFITS = (NotUnderstood, ImportError, AttributeError, TypeError, LookupError)

_PANIC = "pyo3_runtime"  # the module of an error of Rust that it did not expect itself

_introduced = False  # whether the module has found what it takes for asyncio


@dataclass(frozen=True, slots=True)
class Remote:
    """A place of published tables, by its URI; its credentials are in the environment."""

    uri: str
    seconds: float = 10.0  # that a call may wait

    def __str__(self) -> str:
        return self.uri

    @property
    def options(self) -> dict[str, str] | None:
        """The options of an object store, which would try for minutes; None for a local folder."""
        if "://" not in self.uri:
            return None
        seconds = f"{self.seconds:.0f}"
        return {
            "connect_timeout": f"{min(3.0, self.seconds):.0f}s",
            "timeout": f"{seconds}s",
            "client_max_retries": "2",
            "client_retry_timeout": seconds,
        }

    def refuse_missing(self) -> None:
        if "://" not in self.uri and not Path(self.uri).is_dir():
            raise StoreError(f"{self.uri}: {NOT_PUBLISHED}", "lessons index --publish")


Place = Path | Remote


STORE_HINT = "check the address, the network and the credentials in your environment"
_REASONS = {  # what an object store says, in its words -> in a few
    "its region is unknown, set AWS_REGION": ("failed to resolve region",),
    "access denied": ("status: 403", "status: 401", "accessdenied", "permission denied"),
    "no such bucket": ("nosuchbucket",),
    "not reached": ("kind: connect", "dns error", "connection refused"),
    "the connection was cut": ("incompletemessage", "connection reset", "closed before"),
    "no answer in time": ("timedout", "timed out", "no answer in"),
    "no credentials": ("nocredentials", "169.254.169.254"),
    NOT_PUBLISHED: ("was not found",),
    "it stopped answering": ("error sending request",),  # whatever else the line says comes first
}
CUT_HINT = "remove the tables there, then publish them again: lessons index --publish"
_CUT = (  # what LanceDB says of files that are not whole, or gone
    *("failed to fill whole buffer", "invalid range", "requested range was invalid", "not found: "),
    *("encountered corrupt file", "file size is too small", "invalid magic", "invalid format"),
)
# in a message of LanceDB
_OS_ERROR = re.compile(r"\(os error (\d+)\)(?: at path \"([^\"]+)\")?")


@contextmanager
def lance_errors(index: Place) -> Iterator[None]:
    """Turn the errors of LanceDB - RuntimeError, ValueError, OSError - into our kinds.

    Raises VaultError for a module that this one was not written for; StoreError for a `Remote`.
    """
    try:
        yield
    except (*_MISFITS, RuntimeError, ValueError, OSError) as error:
        raise _our_error(error, index) from error
    except BaseException as error:
        if type(error).__module__ != _PANIC:  # no Exception, so nobody would expect it
            raise
        raise _our_error(error, index) from error


def _our_error(error: BaseException, index: Place) -> VaultError:
    message = " ".join(str(error).split())
    is_misfit = isinstance(error, _MISFITS)
    if isinstance(index, Remote) and (isinstance(error, NotUnderstood) or not is_misfit):
        reason = _reason(message, _REASONS)
        if not reason and any(sign in message.lower() for sign in _CUT):
            why = f"a file there is cut, damaged or gone: {message}"[:MAX_DAMAGE_CHARS]
            return StoreError(f"{index.uri}: {why}", CUT_HINT)
        return StoreError(f"{index.uri}: {reason or message[:MAX_DAMAGE_CHARS]}", STORE_HINT)
    if is_misfit and (cause := named_in(message)):  # what is loaded is a file, too
        return unreadable("LanceDB's module", cause)
    if is_misfit:
        return VaultError(
            f"this release of LanceDB cannot be used: {type(error).__name__}: {error}",
            "run `pip install 'lancedb==0.40.*'`",
        )
    if system := _of_system(error, message, index):
        return system
    if isinstance(error, OSError):
        message = error.strerror or message
    path = str(index).strip("/")  # LanceDB names a file without the first slash, too
    for name in (f"file:///{path}/", f"/{path}/", f"{path}/", f"/{path}"):
        message = message.replace(name, "")  # it may be longer than all the rest
    damage = " ".join(message.split())[:MAX_DAMAGE_CHARS]
    hint = "run `lessons index --rebuild`"
    return IndexStateError(f"the index at {index} is damaged: {damage}", hint)


def _of_system(error: BaseException, message: str, index: Place) -> VaultError | None:
    """Return the error where the system refused, which no rebuild mends; None for damage.

    LanceDB names the number of a system's error, and of damage none. A file that is missing within the
    index is damage.
    """
    named = _OS_ERROR.search(message)
    number = error.errno if isinstance(error, OSError) else int(named[1]) if named else None
    cause = OSError(number, os.strerror(number)) if number else named_in(message)
    if cause is None:
        return None
    number = cause.errno
    file = Path(named[2]) if named and named[2] else None
    is_within = file is None or str(index).strip("/") in str(file)
    if index_files.is_missing(cause) or number == errno.EISDIR:
        if is_within or file is None:
            return None
        hint = "set TMPDIR to a folder that is there and can be written"
        return WriteError(f"cannot write {file.parent}: {cause.strerror}", hint)
    if number in (errno.ENOSPC, errno.EDQUOT, errno.EROFS) or (
        number in (errno.EACCES, errno.EPERM) and "Unable to open file" not in message
    ):
        where = index if is_within or file is None else file.parent
        return WriteError(
            f"cannot write {where}: {cause.strerror}", hint_for(cause, "make the folder writable")
        )
    return unreadable(f"the index at {index}", cause, "make it readable")


def _reason(message: str, reasons: Mapping[str, Sequence[str]]) -> str:
    message = message.lower()
    whys = (why for why, signs in reasons.items() if any(sign in message for sign in signs))
    return next(whys, "")


def _with_our_errors(
    ask: Callable[Concatenate[LanceTable, P], T],
) -> Callable[Concatenate[LanceTable, P], T]:
    @wraps(ask)
    def asked(table: LanceTable, /, *args: P.args, **named: P.kwargs) -> T:
        with lance_errors(table.folder):
            return ask(table, *args, **named)

    return asked


class LanceTable:
    """One table of an index folder, opened when it is first asked. `dimension` 0 means no vectors.

    It sees what other processes write, unless it is `pinned`: then it reads the version that was
    there at first. It follows no link that leads out of its folder. Every method raises
    IndexStateError for a damaged table; those that write raise WriteError, too.
    """

    def __init__(
        self, folder: Place, dimension: int, schema: Schema = LESSONS, *, pinned: bool = False
    ) -> None:
        self.folder = folder
        self.index = folder if isinstance(folder, Path) else Path(folder.uri)
        self.schema = schema
        self.dimension = dimension
        self._pinned = pinned
        self._opened: Any = None
        # calls to another machine are not waited for for ever
        self._seconds = folder.seconds if isinstance(folder, Remote) else None
        self._wait: Callable[..., Any] = partial(wait, seconds=self._seconds)

    @property
    def _table(self) -> Any:
        if self._opened is None:
            if isinstance(self.folder, Remote):  # LanceDB would make a folder
                self.folder.refuse_missing()
            elif self.exists():
                ownership.refuse_links(self.folder / f"{self.schema.table}.lance")
            table = self._wait(_connect(self.folder, self._wait).open_table, self.schema.table)
            if self._pinned:
                self._wait(table.checkout, self._wait(table.version))
            self._opened = table
        return self._opened

    def exists(self) -> bool:
        """Whether the table is there; in a folder without opening it. Raises StoreError."""
        if isinstance(self.folder, Path):
            return (self.folder / f"{self.schema.table}.lance" / "_versions").is_dir()
        try:
            self.version()
        except StoreError as error:
            if not error.is_missing:
                raise
            return False
        return True

    @_with_our_errors
    def create(self) -> None:
        """Make the empty table, its key, and the indexes of texts, columns and lists."""
        # without a key two processes that insert the same new ids duplicate them; it is made with the
        # table, so that nobody sees one without
        schema = self.schema
        columns = schema.arrow(self.dimension)
        key = columns.field(KEY).with_metadata({_IS_KEY: "1"})
        columns = columns.set(columns.get_field_index(KEY), key)
        connection = _connect(self.folder, self._wait)
        table = self._wait(connection.create_empty_table, schema.table, "create", columns)
        configs = [
            *((column, BTree()) for column in schema.indexed),
            *((column, LabelList()) for column in schema.indexed_lists),
            (schema.full_text, FTS()),
            (schema.exact_text, FTS(whole_words=True)),
        ]
        for column, config in configs:
            if column:
                self._again(
                    table.create_index,
                    column, index=config, replace=True, wait_timeout=None, name=None, train=True,
                )  # fmt: skip
        self._opened = table

    @_with_our_errors
    def version(self) -> int:
        return int(self._wait(self._table.version))

    @_with_our_errors
    def count(self, where: str | None = None) -> int:
        return int(self._wait(self._table.count_rows, where))

    @_with_our_errors
    def scan(
        self, columns: Sequence[str] | None, where: str | None = None, *, ids: bool = False
    ) -> pa.Table:
        """Return columns (None: all) of the rows that a filter names; with `ids` also `_rowid`."""
        query = _chosen(self._table.query(), columns, where, ids=ids)
        return self._begin(query, max_batch_length=None, timeout=None).result()

    @_with_our_errors
    def begin_bm25(self, text: str, column: str, limit: int) -> Callable[[], pa.Table]:
        """Have LanceDB look for a text beside other work; return a function that waits for its answer."""
        query = self._table.query().nearest_to_text({"query": MatchQuery(text, column)})
        query.limit(limit)
        found = self._begin(_chosen(query, ["_score"]), max_batch_length=limit, timeout=None)

        def answer() -> pa.Table:
            with lance_errors(self.folder):
                return found.result()

        return answer

    @_with_our_errors
    def nearest_rows(self, vector: np.ndarray, limit: int) -> pa.Table:
        """Return `_distance` (1 - cosine) and `_rowid` of the rows nearest to a unit vector."""
        import pyarrow as pa

        query = self._table.query().nearest_to(pa.array(vector, pa.float32()))
        query.distance_type("dot")
        query.bypass_vector_index()
        query.limit(limit)
        query = _chosen(query, ["_distance"])
        return self._begin(query, max_batch_length=limit, timeout=None).result()

    @_with_our_errors
    def rows_by_id(self, row_ids: Sequence[int], columns: Sequence[str]) -> pa.Table:
        """Return columns and `_rowid` of these rows, in the order of the table."""
        return self._begin(_chosen(self._table.take_row_ids(list(row_ids)), columns)).result()

    @_with_our_errors
    def merge_arrow(self, rows: pa.Table, *, delete: bool, update: bool = True) -> None:
        """Write rows in one commit, in the place of those with the same key; `delete` all others.

        Without `update` those that are there stay as they are.
        """
        import numpy as np
        import pyarrow as pa

        for chunk in rows[VECTOR].chunks if VECTOR in rows.column_names else ():
            # a NaN would be as near to everything as to nothing
            if np.isnan(chunk.values.to_numpy(zero_copy_only=False)).any():
                raise ValueError("Vector column 'vector' has NaNs.")
        # with the table's own schema, whose metadata names the key
        rows = pa.Table.from_arrays(rows.columns, schema=self._wait(self._table.schema))
        how = {
            "on": [KEY],
            "when_matched_update_all": update,
            "when_matched_update_all_condition": None,
            "when_not_matched_insert_all": True,
            "when_not_matched_by_source_delete": delete,
            "when_not_matched_by_source_condition": None,
            "when_not_matched_by_source_condition_expr": None,
            "timeout": None,
            "use_index": True,
            "use_lsm": None,
            "validate_single_shard": True,
        }
        self._wait(self._table.execute_merge_insert, rows.to_reader(), how)

    @_with_our_errors
    def delete(self, where: str) -> None:
        self._wait(self._table.delete, where)

    @_with_our_errors
    def optimize(self, older_than: timedelta | None) -> None:
        """Fold new rows into the indexes, and drop versions that are older than this."""
        milliseconds = None if older_than is None else round(1000 * older_than.total_seconds())
        self._again(self._table.optimize, cleanup_since_ms=milliseconds, delete_unverified=False)

    @_with_our_errors
    def count_versions(self) -> int:
        return len(self._wait(self._table.list_versions))

    def _again(self, call: Callable[..., Any], *args: Any, **named: Any) -> Any:
        """Repeat a call that another publisher preempted, as LanceDB does not by itself."""
        for retries in reversed(range(TRIES)):
            try:
                return self._wait(call, *args, **named)
            except (RuntimeError, OSError) as error:
                if not retries or _PREEMPTED not in str(error):
                    raise
                time.sleep(random.uniform(0, TRY_SECONDS))
        return None

    def _begin(self, query: Any, **options: Any) -> Pending[pa.Table]:
        """Begin to read the answer to a query; LanceDB's own batches are small."""
        import pyarrow as pa

        def read() -> Chain[pa.Table]:
            stream = yield partial(query.execute, **options)
            batches: list[pa.RecordBatch] = []
            with suppress(StopAsyncIteration):
                while True:
                    batches.append((yield stream.__anext__))
            return pa.Table.from_batches(batches, schema=stream.schema)

        return native.begin(read(), self._seconds)


def _chosen(
    query: Any, columns: Sequence[str] | None, where: str | None = None, *, ids: bool = True
) -> Any:
    """Return a query that was asked for columns (None: all) of the rows that a filter names."""
    if columns is not None:
        query.select_columns(list(columns))
    if where is not None:
        query.where(where)
    if ids:
        query.with_row_id()
    return query


def _connect(index: Place, waits: Callable[..., Any]) -> Any:
    """Connect to a folder, which fails for no other reason than that the module is another."""
    global _introduced
    options = (None, None, None, None, _ALWAYS, None)
    for name in ("LANCE_LOG", "LANCEDB_LOG"):  # warnings on stderr: of new tables, of its exit
        os.environ.setdefault(name, "error")
    try:
        connect = native.load("lancedb", "_lancedb").connect
        if isinstance(index, Remote):
            if not _introduced:  # which is not to wait for a network
                native.introduce(connect, "memory://", *options, None, None)
            connection = waits(connect, index.uri, *options, index.options, None)
        else:
            first = waits if _introduced else native.introduce
            connection = first(connect, str(index.absolute()), *options, None, None)
    except Exception as error:
        if isinstance(index, Remote):
            raise
        raise NotUnderstood(f"{type(error).__name__}: {error}") from error
    _introduced = True
    return connection


# What the compiled module reads of the objects that describe a query or an index: the name of their
# class, and these attributes, whose values are LanceDB's own defaults except where it is said.
class MatchQuery:
    """A query for any word of a text."""

    boost = 1.0
    fuzziness = 0
    max_expansions = 50
    operator = "OR"
    prefix_length = 0
    document_granularity = None

    def __init__(self, text: str, column: str) -> None:
        self.query, self.column = text, column

    def query_type(self) -> SimpleNamespace:
        return SimpleNamespace(value="match")


class BTree:
    """An index of a column."""


class LabelList:
    """An index of a column of lists."""


class FTS:
    """An index of a text. Without positions: no phrases are asked for."""

    with_position = False
    language = "English"
    lower_case = True
    ascii_folding = True
    ngram_min_length = 3
    ngram_max_length = 3
    prefix_only = False
    block_size = 128
    custom_stop_words = None
    memory_limit = None
    num_workers = None
    document_granularity = "row"

    def __init__(self, *, whole_words: bool = False) -> None:
        self.base_tokenizer = "whitespace" if whole_words else "simple"
        self.max_token_length = MAX_WORD if whole_words else 40
        self.stem = self.remove_stop_words = not whole_words


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
        present = {row["id"]: row for row in self.rows(columns, where)}
        other = [row for row in rows if present.get(row["id"]) != row]
        return other, sorted(present.keys() - {row["id"] for row in rows})

    def replace(self, rows: Sequence[Mapping[str, Any]], stale: Sequence[str]) -> None:
        """Put rows in the place of rows with the same ids, then take out stale ids."""
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

    def has_all_vectors(self) -> bool:
        """Whether each row has its vector, in a table that has some."""
        rows = self.scan([VECTOR]) if self.dimension else None
        return rows is None or bool(matrix(rows, self.dimension).any(axis=1).all())

    def add_vectors(
        self, wheres: Iterable[str], vectors: Mapping[str, np.ndarray]
    ) -> tuple[set[str], int]:
        """Write vectors, by content hash, into rows that filters name and that have none, in one commit.

        Return the paths of rows that still have none, and how many rows were written.
        """
        import numpy as np
        import pyarrow as pa

        incomplete: set[str] = set()
        pieces = []
        for rows in (self.scan(None, where) for where in wheres):
            found, index = matrix(rows, self.dimension), rows.schema.get_field_index(VECTOR)
            none = np.flatnonzero(~found.any(axis=1)).tolist()
            keys, paths = rows["content_hash"].to_pylist(), rows["path"].to_pylist()
            new = [row for row in none if keys[row] in vectors]
            incomplete.update(paths[row] for row in none if keys[row] not in vectors)
            if new:
                flat = pa.array(np.concatenate([vectors[keys[row]] for row in new]), pa.float32())
                column = pa.FixedSizeListArray.from_arrays(flat, self.dimension)
                pieces.append(rows.take(new).set_column(index, rows.schema.field(index), column))
        if pieces:
            self.merge_arrow(pa.concat_tables(pieces), delete=False)
        return incomplete, sum(map(len, pieces))

    def set_withheld(self, wheres: Iterable[str], why: Mapping[str, str]) -> int:
        """Write why hooks leave rows out, by path, in one commit; return the number of named rows."""
        import pyarrow as pa

        pieces = []
        for rows in (self.scan(None, where) for where in wheres):
            at = rows.schema.get_field_index("withheld")
            column = pa.array([why[path] for path in rows["path"].to_pylist()], pa.string())
            pieces.append(rows.set_column(at, rows.schema.field(at), column))
        written = sum(map(len, pieces))
        if written:
            self.merge_arrow(pa.concat_tables(pieces), delete=False)
        return written

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
        """Return columns of all rows, or of those a filter names."""
        rows: list[dict[str, Any]] = self.scan(columns, where).to_pylist()
        return rows

    def rows_of_lessons(self, lesson_ids: Sequence[str]) -> list[LessonRow]:
        """Return all rows of these lessons, with all columns."""
        tables = (self.scan(None, where) for where in some_of("lesson_id", lesson_ids))
        return [row for table in tables for row in table.to_pylist()]

    def rows_and_vectors(
        self, columns: Sequence[str], where: str | None = None
    ) -> tuple[list[dict[str, Any]], np.ndarray | None]:
        """Return rows as `rows` does, sorted by id, and their vectors, float32[n, dimension].

        `id` must be among the columns. The vectors are None in an index that has none.
        """
        wanted = [*columns, VECTOR] if self.dimension else list(columns)
        scanned = self.scan(wanted, where)
        rows = scanned.select(list(columns)).to_pylist()
        order = sorted(range(len(rows)), key=lambda number: str(rows[number]["id"]))
        vectors = matrix(scanned, self.dimension)[order] if self.dimension else None
        return [rows[number] for number in order], vectors

    def vectors(self, hashes: Collection[str]) -> dict[str, np.ndarray]:
        """Return the vectors that rows have already, by content hash: float32[dimension] each.

        A vector of zeros counts as missing: the embedder did not answer, or refused the text.
        """
        vectors: dict[str, np.ndarray] = {}
        for where in some_of("content_hash", hashes if self.dimension else ()):
            rows = self.scan(["content_hash", VECTOR], where)
            keys, found = rows["content_hash"].to_pylist(), matrix(rows, self.dimension)
            pairs = zip(keys, found, strict=True)
            vectors.update((key, vector) for key, vector in pairs if vector.any())
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
