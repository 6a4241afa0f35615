"""LanceDB's package as it is documented, with which tests compare what `store.lance` answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import lancedb
    import pyarrow as pa

MAX_WORD = 100  # bytes of a word that is indexed whole
_ALWAYS = timedelta(0)  # see what other processes committed


def create(folder: Path, name: str, schema: pa.Schema) -> Opened:
    """Make a table without rows, and open it."""
    return Opened(connect(folder).create_table(name, schema=schema))


def open_table(folder: Path, name: str) -> Opened:
    """Open a table."""
    return Opened(connect(folder).open_table(name))


def connect(folder: Path) -> lancedb.db.DBConnection:
    """Connect to a folder of tables, whatever other processes commit."""
    import lancedb  # takes a second, which only tests that come here pay

    return lancedb.connect(folder, read_consistency_interval=_ALWAYS)


class Opened:
    """A table of the package."""

    def __init__(self, table: lancedb.table.Table) -> None:
        self._table = table

    def version(self) -> int:
        """Return the version that this handle reads."""
        return int(self._table.version)

    def count(self) -> int:
        """Return the number of rows."""
        return int(self._table.count_rows())

    def scan(
        self, columns: Sequence[str] | None, where: str | None = None, *, ids: bool = False
    ) -> pa.Table:
        """Return columns (None: all) of the rows that a filter names; with `ids` also `_rowid`."""
        query = self._table.search().limit(None)
        if columns is not None:
            query = query.select(list(columns))
        return _rows(query.with_row_id(True) if ids else query, where)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield columns and `_rowid` of all rows, some thousands at a time."""
        query = self._table.search().limit(None).select(list(columns)).with_row_id(True)
        yield from query.to_batches()

    def bm25(self, text: str, column: str, limit: int) -> pa.Table:
        """Return `_score` (BM25) and `_rowid` of the rows that match any word of a text."""
        from lancedb.query import MatchQuery

        query = self._table.search(MatchQuery(text, column), query_type="fts").limit(limit)
        return _rows(query.with_row_id(True).select(["_score"]), None)

    def rows_by_id(self, row_ids: Sequence[int], columns: Sequence[str]) -> pa.Table:
        """Return columns and `_rowid` of these rows, in the order of the table."""
        query = self._table.take_row_ids(list(row_ids)).with_row_id()
        return query.select(list(columns)).to_arrow()

    def merge_arrow(self, rows: pa.Table, *, delete: bool) -> None:
        """Write rows in the place of those with the same key, in one commit; `delete` all others."""
        merge = self._table.merge_insert("id").when_matched_update_all()
        merge = merge.when_not_matched_insert_all()
        (merge.when_not_matched_by_source_delete(None) if delete else merge).execute(rows)

    def delete(self, where: str) -> None:
        """Take out the rows that a filter names, in one commit."""
        self._table.delete(where)

    def optimize(self, older_than: timedelta | None) -> None:
        """Fold new rows into the indexes, and drop versions that are older than this."""
        self._table.optimize(cleanup_older_than=older_than)

    def count_versions(self) -> int:
        """Return the number of versions that are kept."""
        return len(self._table.list_versions())

    def indexed(self) -> set[str]:
        """Return the columns that have an index."""
        return {column for index in self._table.list_indices() for column in index.columns}

    def prepare(
        self, key: str, texts: tuple[str, str], single: Sequence[str], lists: Sequence[str]
    ) -> None:
        """Set the key of an empty table, and make its indexes: of texts, columns and lists."""
        from lancedb.index import FTS, BTree, LabelList

        self._table.set_unenforced_primary_key(key)
        for column in single:
            self._table.create_index(column, config=BTree())
        for column in lists:
            self._table.create_index(column, config=LabelList())
        prose, words = texts
        if prose:
            config = FTS(with_position=False, stem=True, remove_stop_words=True)
            self._table.create_index(prose, config=config)
        if words:
            whole = FTS(
                with_position=False, base_tokenizer="whitespace", max_token_length=MAX_WORD,
                stem=False, remove_stop_words=False,
            )  # fmt: skip
            self._table.create_index(words, config=whole)


def _rows(query: Any, where: str | None) -> pa.Table:
    return (query.where(where) if where is not None else query).to_arrow()
