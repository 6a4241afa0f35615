"""The narrow door: LanceDB's compiled module, called as LanceDB 0.40's own Python calls it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from vault_index import native
from vault_index.native import NotUnderstood, wait

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

MAX_WORD = 100  # bytes of a word that is indexed whole
_ALWAYS = 0.0  # seconds: see what other processes committed

_introduced = False  # whether the module has found what it takes for asyncio


def create(folder: Path, name: str, schema: pa.Schema) -> Opened:
    """Make a table without rows, and open it."""
    return Opened(wait(_connect(folder).create_empty_table, name, "create", schema))


def open_table(folder: Path, name: str) -> Opened:
    """Open a table."""
    return Opened(wait(_connect(folder).open_table, name))


def _connect(folder: Path) -> Any:
    """Connect to a folder, which fails for no other reason than that the module is another."""
    global _introduced
    options = (None, None, None, None, _ALWAYS, None, None, None)
    os.environ.setdefault("LANCE_LOG", "error")  # it warns on stderr about every new table
    try:
        module = native.load("lancedb", "_lancedb")
        first = wait if _introduced else native.introduce
        connection = first(module.connect, str(folder), *options)
    except Exception as error:
        raise NotUnderstood(f"{type(error).__name__}: {error}") from error
    _introduced = True
    return connection


class Opened:
    """A table of the compiled module."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def version(self) -> int:
        """Return the version that this handle reads."""
        return int(wait(self._table.version))

    def checkout(self, version: int) -> None:
        """Read this version from now on, whatever is written."""
        wait(self._table.checkout, version)

    def count(self) -> int:
        """Return the number of rows."""
        return int(wait(self._table.count_rows, None))

    def scan(self, columns: Sequence[str] | None, where: str | None, ids: bool) -> pa.Table:
        """Return columns (None: all) of the rows that a filter names; with `ids` also `_rowid`."""
        query = self._table.query()
        return _rows(query, columns, where, ids)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield columns and `_rowid` of all rows, some thousands at a time."""
        query = self._table.query()
        query.select_columns(list(columns))
        query.with_row_id()
        return _stream(wait(query.execute, max_batch_length=None, timeout=None))

    def nearest(self, vector: np.ndarray, limit: int, where: str | None) -> pa.Table:
        """Return `_distance` (of the cosine) and `_rowid` of the rows nearest to a unit vector."""
        import pyarrow as pa

        query = self._table.query().nearest_to(pa.array(vector, pa.float32()))
        query.column("vector")
        query.distance_type("cosine")
        query.limit(limit)
        return _rows(query, ["_distance"], where, True, batch_rows=limit)

    def matches(self, text: str, column: str, limit: int, where: str | None) -> pa.Table:
        """Return `_score` (BM25) and `_rowid` of the rows that match any word of a text."""
        query = self._table.query().nearest_to_text({"query": MatchQuery(text, column)})
        query.limit(limit)
        return _rows(query, ["_score"], where, True, batch_rows=limit)

    def take(self, row_ids: Sequence[int], columns: Sequence[str]) -> pa.Table:
        """Return columns and `_rowid` of these rows, in the order of the table."""
        query = self._table.take_row_ids(list(row_ids))
        query.with_row_id()
        query.select_columns(list(columns))
        return _read(wait(query.execute))

    def merge(self, rows: pa.Table, key: str, delete: bool, where: str | None) -> None:
        """Write rows in the place of those with the same key, in one commit."""
        import pyarrow as pa

        _refuse_holes(rows)
        # with the table's own schema, whose metadata names the key
        rows = pa.Table.from_arrays(rows.columns, schema=wait(self._table.schema))
        how = {
            "on": [key],
            "when_matched_update_all": True,
            "when_matched_update_all_condition": None,
            "when_not_matched_insert_all": True,
            "when_not_matched_by_source_delete": delete,
            "when_not_matched_by_source_condition": where,
            "when_not_matched_by_source_condition_expr": None,
            "timeout": None,
            "use_index": True,
            "use_lsm": None,
            "validate_single_shard": True,
        }
        wait(self._table.execute_merge_insert, rows.to_reader(), how)

    def delete(self, where: str) -> None:
        """Take out the rows that a filter names, in one commit."""
        wait(self._table.delete, where)

    def optimize(self, older_than: timedelta | None) -> None:
        """Fold new rows into the indexes, and drop versions that are older than this."""
        milliseconds = None if older_than is None else round(1000 * older_than.total_seconds())
        wait(self._table.optimize, cleanup_since_ms=milliseconds, delete_unverified=False)

    def count_versions(self) -> int:
        """Return the number of versions that are kept."""
        return len(wait(self._table.list_versions))

    def indexed(self) -> set[str]:
        """Return the columns that have an index."""
        return {column for index in wait(self._table.list_indices) for column in index.columns}

    def prepare(
        self, key: str, texts: tuple[str, str], single: Sequence[str], lists: Sequence[str]
    ) -> None:
        """Set the key of an empty table, and make its indexes: of texts, columns and lists."""
        wait(self._table.set_unenforced_primary_key, [key])
        for column in single:
            self._index(column, BTree())
        for column in lists:
            self._index(column, LabelList())
        for column, config in zip(texts, (FTS(), FTS(whole_words=True)), strict=True):
            if column:
                self._index(column, config)

    def index_vectors(self, column: str) -> None:
        """Make the approximate index that a large table needs."""
        self._index(column, IvfFlat())

    def _index(self, column: str, config: object) -> None:
        wait(
            self._table.create_index,
            column, index=config, replace=True, wait_timeout=None, name=None, train=True,
        )  # fmt: skip


def _rows(
    query: Any,
    columns: Sequence[str] | None,
    where: str | None,
    ids: bool,
    *,
    batch_rows: int | None = None,
) -> pa.Table:
    """Run a query; each batch of its rows is a wait for another thread (LanceDB's own are small)."""
    if columns is not None:
        query.select_columns(list(columns))
    if where is not None:
        query.where(where)
    if ids:
        query.with_row_id()
    return _read(wait(query.execute, max_batch_length=batch_rows, timeout=None))


def _read(stream: Any) -> pa.Table:
    import pyarrow as pa

    return pa.Table.from_batches(list(_stream(stream)), schema=stream.schema)


def _stream(stream: Any) -> Iterator[pa.RecordBatch]:
    while True:
        try:
            yield wait(stream.__anext__)
        except StopAsyncIteration:
            return


def _refuse_holes(rows: pa.Table) -> None:
    """Raise ValueError for vectors with a NaN, which would be as near to everything as to nothing."""
    import numpy as np

    if "vector" in rows.column_names:
        for chunk in rows["vector"].chunks:
            if np.isnan(chunk.values.to_numpy(zero_copy_only=False)).any():
                raise ValueError("Vector column 'vector' has NaNs.")


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
        """Return its kind."""
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


class IvfFlat:
    """An index of vectors by their cosine (not LanceDB's default)."""

    distance_type = "cosine"
    num_partitions = None
    max_iterations = 50
    sample_rate = 256
    target_partition_size = None
