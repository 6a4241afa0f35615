"""LanceDB: a table of a folder, through the narrow door if it fits, else through the wide one.

The narrow door is LanceDB's compiled module alone (`narrow`, 10 ms); the wide one is the package as
it is documented (`wide`, 1 to 2.5 s). Both give the same answers, as tests compare. The compiled
module is not documented: a release may change it, and a test fails then. Whoever has such a release
goes through the wide door: that takes longer, and nothing else is different.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from vault_index.native import NotUnderstood

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

T = TypeVar("T")

# What it comes to when something is not there any more, or takes other arguments. What LanceDB
# says of tables and disks - RuntimeError, ValueError, OSError - is not among them.
_MISFITS = (NotUnderstood, ImportError, AttributeError, TypeError, LookupError)

_misfit = ""  # why this process goes through the wide door


class Door(Protocol):
    """An opened table. Raises what LanceDB raises: RuntimeError, ValueError, OSError."""

    def version(self) -> int:
        """Return the version that this handle reads."""

    def checkout(self, version: int) -> None:
        """Read this version from now on, whatever is written."""

    def count(self) -> int:
        """Return the number of rows."""

    def scan(self, columns: Sequence[str] | None, where: str | None, ids: bool) -> pa.Table:
        """Return columns (None: all) of the rows that a filter names; with `ids` also `_rowid`."""

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield columns and `_rowid` of all rows, some thousands at a time."""

    def nearest(self, vector: np.ndarray, limit: int, where: str | None) -> pa.Table:
        """Return `_distance` (of the cosine) and `_rowid` of the rows nearest to a unit vector."""

    def matches(self, text: str, column: str, limit: int, where: str | None) -> pa.Table:
        """Return `_score` (BM25) and `_rowid` of the rows that match any word of a text."""

    def take(self, row_ids: Sequence[int], columns: Sequence[str]) -> pa.Table:
        """Return columns and `_rowid` of these rows, in the order of the table."""

    def merge(self, rows: pa.Table, key: str, delete: bool, where: str | None) -> None:
        """Write rows in the place of those with the same key, in one commit.

        With `delete` all others go that a filter names, or simply all others.
        """

    def delete(self, where: str) -> None:
        """Take out the rows that a filter names, in one commit."""

    def optimize(self, older_than: timedelta | None) -> None:
        """Fold new rows into the indexes, and drop versions that are older than this."""

    def count_versions(self) -> int:
        """Return the number of versions that are kept."""

    def indexed(self) -> set[str]:
        """Return the columns that have an index."""

    def prepare(
        self, key: str, texts: tuple[str, str], single: Sequence[str], lists: Sequence[str]
    ) -> None:
        """Set the key of an empty table, and make its indexes: of texts, columns and lists.

        `texts` are a column of prose and one of whole words between spaces, "" for none.
        """

    def index_vectors(self, column: str) -> None:
        """Make the approximate index that a large table needs."""


class LanceTable:
    """A table by its folder and name; opened, through whichever door fits, when it is first asked.

    It sees what other processes write, unless it is `pinned`: then it reads the version that was
    there at first.
    """

    def __init__(self, folder: Path, name: str, *, pinned: bool = False) -> None:
        self._folder = folder.absolute()
        self._name = name
        self._pinned = pinned
        self._version: int | None = None
        self._door: Door | None = None

    def create(self, schema: pa.Schema) -> None:
        """Make the table, without rows and indexes."""
        from vault_index.store.lance import narrow, wide

        def through_narrow() -> Door:
            return narrow.create(self._folder, self._name, schema)

        def through_wide() -> Door:
            return wide.create(self._folder, self._name, schema)

        self._door = _first_that_fits(through_narrow, through_wide)

    def ask(self, question: Callable[[Door], T]) -> T:
        """Return what the opened table answers."""
        return _first_that_fits(
            lambda: question(self._door or self._open()),
            lambda: question(self._wide_door()),
        )

    def _open(self) -> Door:
        from vault_index.store.lance import narrow

        return self._at_version(narrow.open_table(self._folder, self._name))

    def _wide_door(self) -> Door:
        from vault_index.store.lance import wide

        if isinstance(self._door, wide.Opened):
            return self._door
        return self._at_version(wide.open_table(self._folder, self._name))

    def _at_version(self, door: Door) -> Door:
        if self._pinned:
            if self._version is None:
                self._version = door.version()
            door.checkout(self._version)
        self._door = door
        return door


def wide_because() -> str:
    """Return why this process goes through the wide door; "" if it does not."""
    return _misfit


def _first_that_fits(narrow: Callable[[], T], wide: Callable[[], T]) -> T:
    """Go through the narrow door; through the wide one if that does not fit, and from then on."""
    global _misfit
    if not _misfit:
        try:
            return narrow()
        except _MISFITS as misfit:
            _misfit = f"{type(misfit).__name__}: {misfit}"
    return wide()
