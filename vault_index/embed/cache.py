"""Vectors by the content they are of, for all vaults of a user: a new clone or worktree of a known
vault embeds nothing again.

A cache: whatever is wrong with it, it is as if it were empty.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from vault_index.errors import EmbedderError, LaterError, WriteError
from vault_index.files.cache import CacheFile

if TYPE_CHECKING:
    import numpy as np

T = TypeVar("T")
Shared = Callable[[Mapping[str, Any], Callable[[list[Any]], Any]], Mapping[str, "np.ndarray"]]

FILE = "vectors.sqlite3"
MAX_VECTORS = 100_000  # 1.6 KB each with minilm; the oldest tenth goes when there are more
_COLUMNS = (
    "embedder TEXT NOT NULL, content TEXT NOT NULL, vector BLOB NOT NULL,"
    " PRIMARY KEY (embedder, content)"
)
_KEPT = """
SELECT content, vector FROM vectors
WHERE embedder = ? AND content IN (SELECT value FROM json_each(?))
"""


@dataclass
class VectorCache:
    """The vectors of one embedder. `home` is the user's folder.

    One that is not `trusted` is written and never read: for who asks for a rebuild. `shared` returns
    vectors that others made, of contents by hash that are made in this way (`publish`). If more than
    `at_most` are missing, none is made: that would take longer than the caller has.
    """

    home: Path
    embedder: str
    dimension: int
    trusted: bool = field(default=True, kw_only=True)
    shared: Shared | None = field(default=None, kw_only=True)
    at_most: int | None = field(default=None, kw_only=True)
    embedded: int = field(default=0, init=False)  # vectors, by `get_or_make`

    @property
    def _cache(self) -> CacheFile:
        return CacheFile(self.home / FILE, "vectors", _COLUMNS, MAX_VECTORS)

    def get(self, contents: Collection[str]) -> dict[str, np.ndarray]:
        """Return the vectors there are, float32[dimension], by content hash."""
        import numpy as np

        vectors: dict[str, np.ndarray] = {}
        cache = self._cache
        if contents and self.trusted and cache.file.exists():
            wanted = [self.embedder, json.dumps(sorted(contents))]
            with cache.as_if_empty(), contextlib.closing(cache.open()) as database:
                for content, blob in database.execute(_KEPT, wanted):
                    if len(blob) == 4 * self.dimension:
                        vectors[content] = np.frombuffer(blob, dtype="<f4").astype(np.float32)
        return vectors

    def get_or_make(
        self,
        make: Callable[[list[T]], Iterable[np.ndarray]],
        contents: Mapping[str, T],
        known: Mapping[str, np.ndarray] = MappingProxyType({}),
    ) -> dict[str, np.ndarray]:
        """Return the vectors of all contents, by hash; those neither `known`, kept nor shared are made.

        New ones are kept. `make` returns float32[dimension] for each of a list; its errors pass through.
        Raises LaterError for more than `at_most`.
        """
        vectors = self.known_of(contents, known)
        missing = {key: what for key, what in contents.items() if key not in vectors}
        if self.at_most is not None and len(missing) > self.at_most:
            raise LaterError(f"{len(missing)} vectors are still to be made")
        if missing and self.shared is not None:
            from_team = self.shared(missing, make)  # not kept here: other vaults would believe them
            vectors |= from_team
            missing = {key: what for key, what in missing.items() if key not in from_team}
        if missing:
            new = dict(zip(missing, make([*missing.values()]), strict=True))
            self.put(new)
            self.embedded += len(new)
            vectors |= new
        return vectors

    def get_or_known(
        self, make: Callable[[list[T]], Iterable[np.ndarray]] | None, contents: Mapping[str, T]
    ) -> tuple[dict[str, np.ndarray], EmbedderError | None]:
        """Return the vectors of contents: all, or if they cannot be made those that are kept, and why.

        Without `make` it returns no vectors.
        """
        if make is None:
            return {}, None
        try:
            return self.get_or_make(make, contents), None
        except EmbedderError as error:
            return self.known_of(contents), error

    def known_of(
        self, contents: Mapping[str, T], known: Mapping[str, np.ndarray] = MappingProxyType({})
    ) -> dict[str, np.ndarray]:
        """Return the vectors of contents that are `known` or kept; none is made."""
        return {**known, **self.get(contents.keys() - known.keys())}

    def put(self, vectors: Mapping[str, np.ndarray]) -> None:
        blobs = {key: vector.astype("<f4").tobytes() for key, vector in vectors.items()}
        rows = [(self.embedder, key, blob) for key, blob in blobs.items()]
        cache = self._cache
        with cache.as_if_empty(), contextlib.closing(cache.open()) as database, database:
            database.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows)
            cache.drop_oldest(database)

    def remove(self, contents: Collection[str]) -> None:
        """Forget the vectors of these contents, in the bytes of the file, too. Raises WriteError."""
        import sqlite3

        cache = self._cache
        if not contents or not cache.file.exists():
            return
        try:
            with contextlib.closing(cache.open()) as database, database:
                database.execute("PRAGMA secure_delete = ON")
                database.execute("CREATE TEMP TABLE gone (content TEXT)")
                database.executemany("INSERT INTO gone VALUES (?)", ([each] for each in contents))
                database.execute("DELETE FROM vectors WHERE content IN (SELECT content FROM gone)")
        except (OSError, sqlite3.DatabaseError) as error:  # it is a cache
            raise WriteError(f"cannot write {cache.file}: {error}", f"rm {cache.file}") from None
