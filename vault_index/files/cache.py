"""A SQLite file of one table that may be lost: whatever is wrong with it, it is as if it were empty."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3

BUSY_SECONDS = 2.0  # for another process that writes
_ENDS = ("", "-journal", "-wal", "-shm")  # of the names of SQLite's files


@dataclass(frozen=True, slots=True)
class CacheFile:
    """Its place, the columns of its table, and how many rows it has at most."""

    file: Path
    table: str
    columns: str  # as in CREATE TABLE
    most: int

    def open(self) -> sqlite3.Connection:
        """Open the file, made if it is missing, for this user alone. Raises OSError, sqlite3.Error."""
        import sqlite3

        with contextlib.suppress(FileExistsError):
            flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC
            os.close(os.open(self.file, flags, 0o600))
        db = sqlite3.connect(self.file, timeout=BUSY_SECONDS, check_same_thread=False)
        try:
            db.execute(f"CREATE TABLE IF NOT EXISTS {self.table} ({self.columns})")
        except BaseException:
            db.close()
            raise
        return db

    def drop_oldest(self, db: sqlite3.Connection) -> None:
        """Drop a tenth of the rows, those that were written first, if there are too many."""
        (count,) = db.execute(f"SELECT count(*) FROM {self.table}").fetchone()
        if count > self.most:
            oldest = f"SELECT rowid FROM {self.table} ORDER BY rowid LIMIT ?"
            least = count - self.most * 9 // 10
            db.execute(f"DELETE FROM {self.table} WHERE rowid IN ({oldest})", [least])

    @contextlib.contextmanager
    def as_if_empty(self) -> Iterator[None]:
        """Pass over a file that is in use, damaged, or where nothing can be written."""
        import sqlite3

        try:
            yield
        except sqlite3.Error as error:
            unusable = sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in unusable:
                self.remove()
        except OSError:
            return

    def remove(self) -> None:
        """Remove the file, with what SQLite has beside it."""
        for end in _ENDS:
            with contextlib.suppress(OSError):
                self.file.with_name(self.file.name + end).unlink()
