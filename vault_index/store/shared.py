"""Vectors that a team shares: a LanceDB table at a URI, by the hash of what each vector is of.

CI fills the table of an embedder (`lessons index --publish`); laptops take vectors from it and embed
the rest. Nothing that comes from there is believed: a vector has the right length,
is a unit vector, of a text that this machine has, by the same embedder; and of each batch a few texts
are embedded here, too, and compared. A row that fails is refused and named, its text embedded here.

A store that does not keep "write only if it is not there" loses rows silently, so `refuse_unsafe`
tries that before the first row is written.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from random import SystemRandom
from typing import TYPE_CHECKING, Any, TypeVar

from vault_index import files
from vault_index.errors import StoreError, VaultError
from vault_index.files import private
from vault_index.lesson.file import hash_of
from vault_index.store import filters
from vault_index.store.lance import STORE_HINT, Remote
from vault_index.store.schema import VECTOR, VECTORS
from vault_index.store.table import Table

if TYPE_CHECKING:
    import numpy as np

T = TypeVar("T")

MIN_VECTORS = 32  # vectors that are asked for: fewer are embedded in less time than a store answers
PROBES = 8  # of a batch that was taken, embedded here as well
MIN_COSINE = 0.9  # cosine with the vector that was made here: processors differ by 0.01
LENGTH = 0.01  # that a unit vector may be longer or shorter
PUBLISH_SECONDS = 300.0  # for a call of who publishes: a commit, or folding rows into the index
CREATE_SECONDS, LOOK_SECONDS = 60.0, 0.5  # to make a table, at most; between two looks at it
KEEP_VERSIONS = timedelta(hours=1)  # no laptop reads one version for longer
ROWS = 5_000  # of a commit: 8 MB
REFUSED = "shared.json"  # in the user's folder: what was refused last
MAX_REFUSED = 20
_SCHEME = re.compile(r"[a-z0-9+]+://")
_NO_PROBE = ("file://", "memory://", "s3+ddb://")  # a file system and DynamoDB keep the condition


class SharedVectors:
    """The table of one embedder at a URI. `home` is the user's folder; `recipe` names the embedder."""

    def __init__(self, uri: str, recipe: str, dimension: int, home: Path) -> None:
        self.uri = uri
        self.recipe = recipe
        self.dimension = dimension
        self._home = home
        self._schema = replace(VECTORS, table=table_name(recipe))
        self._table = Table(Remote(uri), dimension, self._schema)
        self.taken = 0
        self.trouble = ""  # why nothing is taken any more
        self.refused: list[str] = []  # rows, with the reason

    def __call__(
        self, contents: Mapping[str, T], make: Callable[[list[T]], Iterable[np.ndarray]]
    ) -> dict[str, np.ndarray]:
        """Return the vectors of contents, by hash, that are there and can be believed. Raises nothing."""
        if len(contents) < MIN_VECTORS or self.trouble:
            return {}
        try:
            vectors = self._take(contents)
        except VaultError as error:
            self.trouble = error.message
            return {}
        for key in SystemRandom().sample(sorted(vectors), min(PROBES, len(vectors))):
            (own,) = make([contents[key]])
            if float(vectors[key] @ own) < MIN_COSINE:
                self._refuse(key, "it is not the vector of its text")
                self.trouble = f"{self.uri}: refused row {key}: it is not the vector of its text"
                return {}
        self.taken += len(vectors)
        return vectors

    def _take(self, wanted: Collection[str]) -> dict[str, np.ndarray]:
        vectors: dict[str, np.ndarray] = {}
        columns = [*self._schema.columns()]
        for where in filters.some_of("id", wanted):
            for row in self._table.rows(columns, where):
                vector = self._vector(row, wanted)
                if isinstance(vector, str):
                    self._refuse(str(row["id"]), vector)
                else:
                    vectors[row["id"]] = vector
        return vectors

    def _vector(self, row: Mapping[str, Any], asked: Collection[str]) -> np.ndarray | str:
        """Return the vector of a row, or why it cannot be believed."""
        import numpy as np

        if row["id"] not in asked:
            return "nobody asked for its text"
        if row["embedder"] != self.recipe:
            return f"it is of the embedder {str(row['embedder'])[:80]!r}"
        if row["vector"] is None or len(row["vector"]) != self.dimension:
            return f"it has not {self.dimension} numbers"
        vector = np.asarray(row["vector"], np.float32)
        length = float(np.linalg.norm(vector)) if np.isfinite(vector).all() else 0.0
        return vector if abs(length - 1) <= LENGTH else f"its length is {length:.3g}"

    def _refuse(self, row: str, why: str) -> None:
        self.refused.append(f"{row[:80]}: {why}")

    @property
    def refusals(self) -> str:
        """The rows that were refused, in a line; "" for none."""
        if not self.refused:
            return ""
        more = f" and {len(self.refused) - 1} more" if len(self.refused) > 1 else ""
        return f"{self.uri}: refused row {self.refused[0]}{more}"

    def note_refused(self) -> None:
        """Keep the rows that were refused for `status --check`, or forget those of before."""
        file = self._home / REFUSED
        if self.refused:
            noted = {"uri": self.uri, "rows": self.refused[:MAX_REFUSED]}
            files.replace_file(file, json.dumps(noted).encode())
        elif self.taken:
            file.unlink(missing_ok=True)

    def count(self) -> int:
        """Count the vectors. Raises StoreError."""
        return self._table.count()

    def publish(
        self,
        vectors: Iterable[tuple[list[str], np.ndarray]],
        progress: Callable[[int], None] = lambda _done: None,
    ) -> int:
        """Add the vectors, (hashes, float32[n, dimension]), that are not there; return how many.

        `progress` gets how many were looked at. Two who publish at once make no duplicate. Raises
        StoreError.
        """
        table = Table(Remote(self.uri, PUBLISH_SECONDS), self.dimension, self._schema)
        publishing(self.uri, self._schema.table, table.exists, table.create)
        there = {row["id"] for row in table.rows(("id",))}
        added = done = 0
        for hashes, matrix in _batched(vectors):
            new = [at for at, key in enumerate(hashes) if key not in there]
            if new:
                recipe = self.recipe
                rows = [{"id": hashes[at], "embedder": recipe, VECTOR: matrix[at]} for at in new]
                table.merge(rows, update=False)
            added += len(new)
            done += len(hashes)
            progress(done)
        if added:
            table.fold(KEEP_VERSIONS)
        return added


def refused_before(home: Path) -> dict[str, Any]:
    """Return `uri` and `rows` of what was refused last; {} for nothing."""
    return files.read_json(home / REFUSED)


def table_name(recipe: str, what: str = "vectors") -> str:
    """Return the name of the table of an embedder: `vectors_minilm_l6_v2_int8_title_25_prose_3f2a`."""
    plain = re.sub(r"[^a-z0-9]+", "_", recipe.lower()).strip("_")
    return f"{what}_{plain[:60]}_{hash_of(recipe)[:4]}"


def publishing(
    uri: str, name: str, is_there: Callable[[], bool], create: Callable[[], None]
) -> None:
    """Make a table at an address unless it is there, once the store is safe. Raises StoreError.

    If two make it at once, one does and the other waits: to LanceDB the later of them overwrites
    the table of the earlier, with the rows that are there by then.
    """
    is_local = not _SCHEME.match(uri)
    if is_local:
        with files.writing(Path(uri)):
            Path(uri).mkdir(parents=True, exist_ok=True)
    if is_there():
        return
    if is_local:
        with private.locked(Path(uri) / f".{name}.lock"):
            if not is_there():
                create()
        return
    refuse_unsafe(uri)
    turn = 0
    while not uri.startswith(_NO_PROBE) and not _claim(uri, f".{name}-{turn}"):
        turn += 1  # unless the table comes, who claimed the turn was killed
        until = time.monotonic() + CREATE_SECONDS
        while time.monotonic() < until:
            if is_there():
                return
            time.sleep(LOOK_SECONDS)
    if not is_there():
        create()


def refuse_unsafe(uri: str) -> None:
    """Raise StoreError for a store that does not refuse a second write of "only if it is not there"."""
    if not _SCHEME.match(uri) or uri.startswith(_NO_PROBE):
        return
    name = f".probe-{os.urandom(8).hex()}"
    with _put_in(uri) as put:
        is_safe = put(name) and not put(name)
        put(name, delete=True)
    if not is_safe:
        raise StoreError(
            f"{uri}: the store ignores If-None-Match, so two who publish would lose rows",
            "use a store that keeps conditional writes, such as S3, GCS or Azure",
        )


def _claim(uri: str, name: str) -> bool:
    with _put_in(uri) as put:
        return put(name)


@contextmanager
def _put_in(uri: str) -> Iterator[Callable[..., bool]]:
    """Yield what puts an object into a store unless it is there, or deletes it. Raises StoreError."""
    try:
        import obstore
        from obstore.store import from_url
    except ImportError:
        raise StoreError(
            f"{uri}: to publish there needs obstore",
            "install the package again with its extra: `.[publish]`",
        ) from None

    def put(name: str, *, delete: bool = False) -> bool:
        try:
            if delete:
                obstore.delete(store, name)
            else:
                obstore.put(store, name, b"1", mode="create")
        except obstore.exceptions.AlreadyExistsError:
            return False
        return True

    try:
        store = from_url(
            uri, retry_config={"max_retries": 2, "retry_timeout": timedelta(seconds=10)}
        )
        yield put
    except Exception as error:  # its errors have no other class in common  # noqa: BLE001
        said = " ".join(str(error).split())[:160]
        raise StoreError(f"{uri}: {type(error).__name__}: {said}", STORE_HINT) from None


def _batched(
    vectors: Iterable[tuple[list[str], np.ndarray]],
) -> Iterator[tuple[list[str], np.ndarray]]:
    """Yield the vectors some thousands at a time, each hash once."""
    import numpy as np

    batch: dict[str, np.ndarray] = {}
    written: set[str] = set()
    for hashes, matrix in vectors:
        for key, vector in zip(hashes, matrix, strict=True):
            if key not in written:
                written.add(key)
                batch[key] = vector
            if len(batch) == ROWS:
                yield [*batch], np.array([*batch.values()])
                batch = {}
    if batch:
        yield [*batch], np.array([*batch.values()])
