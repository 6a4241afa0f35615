"""The findings of rules in texts that were checked before: an unchanged file costs next to nothing.

A text is known by the SHA-256 of all of it and of the rules, so no other text has its findings, and a new
version of the rules begins with nothing. Neither the text nor its path is kept. A text in which something
looks like a secret is not kept at all: the hash of a password can be guessed. Nor is one that took a rule
too long: that depends on the machine.

The file is a cache in the user's folder: see `files.cache`.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import json
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from vault_index.check.finding import Finding
from vault_index.files.cache import CacheFile

if TYPE_CHECKING:
    import sqlite3
    from typing import Self

    from vault_index.check import Candidate

FILE = "findings.sqlite3"
MAX_TEXTS = 50_000  # some 100 bytes each
_COLUMNS = "text BLOB PRIMARY KEY, findings TEXT NOT NULL"
_AT_ONCE, _AT_ONCE_SECONDS = 256, 2.0  # texts that are written in one transaction, and how late
_TRIES = 2  # to open a file that was damaged, or is in use
_PACKAGE = Path(__file__).parents[1]
_RULES = ("check", "lesson", "text")  # folders of the package that decide what is found
_LIBRARIES = ("yaml", "markdown_it")  # the first file of each has its version
_LOADED_NS = time.time_ns()


class KeptFindings:
    """The findings of texts that were checked before. `home` is the user's folder.

    For one thread; whoever has it closes it, as what is new is written late.
    """

    def __init__(self, home: Path) -> None:
        self._cache = CacheFile(home / FILE, "found", _COLUMNS, MAX_TEXTS)
        self._new: dict[bytes, str] = {}
        self._written = time.monotonic()
        self._db: sqlite3.Connection | None = None
        self._tries = _TRIES if rules() is not None else 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def get(self, candidate: Candidate) -> list[Finding] | None:
        """Return the findings of all rules in the words of a file, None if they are not known."""
        key = _key(candidate)
        text: str | None = self._new.get(key)
        if text is None:
            with self._opened() as db:
                select = "SELECT findings FROM found WHERE text = ?"
                row = db.execute(select, [key]).fetchone() if db else None
                text = row[0] if row else None
        try:
            return None if text is None else [*_findings(candidate.shown, text)]
        except (ValueError, TypeError):
            return None

    def put(self, candidate: Candidate, findings: Iterable[Finding]) -> None:
        """Keep the findings of all rules in the words of a file."""
        listed = list(findings)
        if not self._tries or any(each.fingerprints for each in listed):
            return
        rows = [(e.line, e.rule, e.message, e.severity, e.pattern, e.holds) for e in listed]
        self._new[_key(candidate)] = json.dumps(rows)
        is_late = time.monotonic() - self._written > _AT_ONCE_SECONDS
        if len(self._new) >= _AT_ONCE or is_late:
            self.write()

    def write(self) -> None:
        """Write the new findings."""
        rows, self._new = [*self._new.items()], {}
        self._written = time.monotonic()
        with self._opened() as db:
            if db and rows:
                with db:
                    db.executemany("INSERT OR REPLACE INTO found VALUES (?, ?)", rows)
                    self._cache.drop_oldest(db)

    def close(self) -> None:
        self.write()
        if self._db is not None:
            self._db.close()
            self._db = None

    @contextlib.contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection | None]:
        """Yield the open file; None where it cannot be used. One that is damaged begins as a new one."""
        if self._db is None and self._tries:
            with self._cache.as_if_empty():
                self._db = self._cache.open()
        is_done = False
        with self._cache.as_if_empty():
            yield self._db
            is_done = True
        if not is_done or self._db is None:
            self._tries = max(0, self._tries - 1)
            if self._db is not None:
                self._db.close()
                self._db = None


def _findings(shown: str, text: str) -> Iterator[Finding]:
    for line, rule, message, severity, pattern, holds in json.loads(text):
        yield Finding(shown, line, rule, message, severity, pattern, holds)


def _key(candidate: Candidate) -> bytes:
    kind = "lesson" if candidate.is_lesson else "other"
    hashed = hashlib.sha256(f"{rules()} {kind} ".encode())
    hashed.update(candidate.data)
    return hashed.digest()


@functools.cache
def rules() -> str | None:
    """Return the hash of the rules' code and data; None where it changed since this process began."""
    files = [path for folder in _RULES for path in sorted((_PACKAGE / folder).rglob("*.*"))]
    specs = map(importlib.util.find_spec, _LIBRARIES)
    files += [Path(spec.origin) for spec in specs if spec and spec.origin]
    hashed = hashlib.sha256(sys.version.encode())
    for file in files:
        if file.suffix == ".pyc" or not file.is_file():
            continue
        if file.stat().st_ctime_ns > _LOADED_NS:  # an upgrade: what is loaded is the older one
            return None
        hashed.update(f"{file.name} {file.stat().st_size} ".encode() + file.read_bytes())
    return hashed.hexdigest()
