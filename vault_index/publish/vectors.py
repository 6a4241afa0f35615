"""Vectors that a team shares: a LanceDB table at a URI, by the hash of what each vector is of.

Nothing that comes from there is believed: each is checked to be a unit vector by the same embedder, of
a text that this machine has, and some of a batch are embedded here as well. The others are marked in the
index, and the watcher compares them later (`compare_some`). One that fails is named.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from random import SystemRandom
from typing import TYPE_CHECKING, Any, TypeVar

from vault_index import files, state
from vault_index.errors import StoreError, VaultError
from vault_index.lesson.file import hash_of
from vault_index.store import filters
from vault_index.store.lance import STORE_HINT, Remote, Table, matrix
from vault_index.store.schema import VECTOR, VECTORS, Schema

if TYPE_CHECKING:
    import numpy as np

    from vault_index.store.sync import Progress

T = TypeVar("T")

MIN_VECTORS = 32  # vectors that are asked for: fewer are embedded in less time than a store answers
PROBES = 8  # of a batch that was taken, embedded here as well
MIN_COSINE = 0.9  # cosine with the vector that was made here: processors differ by 0.01
LENGTH = 0.01  # that a unit vector may be longer or shorter
REACH_SECONDS = 5.0  # for the first look at a store, before anything is embedded
PUBLISH_SECONDS = 60.0  # for a call of a publisher: a commit of ROWS takes 3 MB, or .4 Mbit/s
KEEP_VERSIONS = timedelta(hours=1)  # no laptop reads one version for longer
ROWS = 2_000  # of a commit: 3 MB
MARKS = "taken.json"  # in an index: the hashes of what was taken and not compared yet
MAX_REFUSED = 5
WRONG = "it is not the vector of its text"
CREATE_SECONDS, LOOK_SECONDS = 60.0, 0.5  # to make a table, at most; between two looks at it
_SAFE = ("file://", "memory://", "s3+ddb://")  # a file system and DynamoDB keep the condition


@dataclass
class SharedVectors:
    """The table of one embedder at a URI. `home` is the user's folder; `recipe` names the embedder.

    Vectors that are taken are marked in the folder `index`.
    """

    uri: str
    recipe: str
    dimension: int
    home: Path
    index: Path | None = None
    _taken: int = field(default=0, init=False)
    _trouble: str = field(default="", init=False)  # why nothing is taken any more
    _refused: dict[str, str] = field(default_factory=dict, init=False)  # rows, with the reason

    def __post_init__(self) -> None:
        self._schema = replace(VECTORS, table=table_name(self.recipe))
        self._table = Table(Remote(self.uri), self.dimension, self._schema)
        self._noted_as = f"refused of {self.uri}"

    def __call__(
        self, contents: Mapping[str, T], make: Callable[[list[T]], Iterable[np.ndarray]]
    ) -> dict[str, np.ndarray]:
        """Return the vectors of contents, by hash, that are there and can be believed. Raises nothing."""
        if len(contents) < MIN_VECTORS or self._trouble:
            return {}
        try:
            vectors = self._take(contents)
        except VaultError as error:
            self._trouble = error.message
            return {}
        for key in SystemRandom().sample(sorted(vectors), min(PROBES, len(vectors))):
            (vector,) = make([contents[key]])
            if float(vectors[key] @ vector) < MIN_COSINE:
                self._refused[key] = WRONG
                self._trouble = f"{self.uri}: refused row {key}: {WRONG}"
                return {}
        if self.index is not None and vectors:
            mark(self.index, marked(self.index) | vectors.keys())
        self._taken += len(vectors)
        return vectors

    def _take(self, wanted: Collection[str]) -> dict[str, np.ndarray]:
        vectors: dict[str, np.ndarray] = {}
        for where in filters.some_of("id", wanted):
            for row in self._table.rows([*self._schema.columns()], where):
                vector = self._vector(row, wanted)
                if isinstance(vector, str):
                    self._refused[str(row["id"])[:80]] = vector
                else:
                    vectors[row["id"]] = vector
        return vectors

    def _vector(self, row: Mapping[str, Any], wanted: Collection[str]) -> np.ndarray | str:
        """Return the vector of a row, or why it cannot be believed."""
        import numpy as np

        if row["id"] not in wanted:
            return "nobody asked for its text"
        if row["embedder"] != self.recipe:
            return f"it is of the embedder {str(row['embedder'])[:80]!r}"
        if row["vector"] is None or len(row["vector"]) != self.dimension:
            return f"it has not {self.dimension} numbers"
        vector = np.asarray(row["vector"], np.float32)
        length = float(np.linalg.norm(vector)) if np.isfinite(vector).all() else 0.0
        return vector if abs(length - 1) <= LENGTH else f"its length is {length:.3g}"

    def finish(self) -> tuple[int, str]:
        """Return the number of taken vectors, and the trouble; keep refused rows for `status --check`."""
        refused = [f"{key}: {why}" for key, why in self._refused.items()]
        if refused:
            self.note_refused(self._refused)
        more = f" and {len(refused) - 1} more" if len(refused) > 1 else ""
        first = f"{self.uri}: refused row {refused[0]}{more}" if refused else ""
        return self._taken, self._trouble or first

    def note_refused(self, refused: Mapping[str, str]) -> None:
        rows = self._noted()
        rows |= {key: [why, self._row_hash(key)] for key, why in [*refused.items()][:MAX_REFUSED]}
        state.keep_fact(self.home, self._noted_as, dict([*rows.items()][-MAX_REFUSED:]))

    def refused(self) -> list[str]:
        noted = self._noted().items()
        return [
            f"{key}: {why}"
            for key, (why, row_hash) in noted
            if row_hash in ("", self._row_hash(key))
        ]

    def _noted(self) -> dict[str, list[str]]:
        return {**(state.fact(self.home, self._noted_as) or {})}

    def _row_hash(self, key: str) -> str:
        """Return a hash of a row as it is there now, "" without it, or where nothing is reached."""
        with suppress(StoreError):
            rows = self._table.rows([*self._schema.columns()], filters.any_of("id", [key]))
            return hash_of(*(str(sorted(row.items())) for row in rows)) if rows else ""
        return ""

    @property
    def table(self) -> Table:
        """The table at the address."""
        return self._table

    def count(self) -> int:
        return self._table.count()

    def publish(self, source: Table, progress: Progress) -> int:
        """Add the vectors of an index's rows that are missing; return their number.

        Two who publish at once make no duplicate. Raises StoreError.
        """
        table = table_at(self.uri, self.dimension, self._schema)
        present = {row["id"] for row in table.rows(("id",))}
        here = source.scan(["content_hash", VECTOR], filters.FOR_AGENTS)
        vectors = matrix(here, self.dimension)
        hashes = here["content_hash"].to_pylist()
        # a text that the model refuses has a vector of zeros, which says nothing to others
        new = {
            key: number
            for number, key in enumerate(hashes)
            if key not in present and vectors[number].any()
        }
        rows = [
            {"id": key, "embedder": self.recipe, VECTOR: vectors[number]}
            for key, number in new.items()
        ]
        write(table, rows, progress, update=False)
        return len(rows)


def write(
    table: Table,
    rows: Sequence[Mapping[str, Any]],
    progress: Progress,
    stale: Sequence[str] = (),
    *,
    update: bool,
) -> None:
    """Write rows to a table that others read, some in a commit, then take out stale ids."""
    for start in range(0, len(rows), ROWS):
        table.merge(rows[start : start + ROWS], update=update)
        progress(min(start + ROWS, len(rows)), len(rows))
    table.replace((), stale)
    if rows or stale:
        table.fold(KEEP_VERSIONS)


def marked(index: Path) -> set[str]:
    """Return the hashes of vectors that were taken into an index and not compared yet."""
    return {str(key) for key in files.read_json(index / MARKS).get("taken", ())}


def mark(index: Path, hashes: Iterable[str]) -> None:
    """Mark taken vectors that are not compared yet; the caller holds the lock. Raises WriteError."""
    files.replace_file(index / MARKS, json.dumps({"taken": sorted(hashes)}).encode())


def table_name(recipe: str, what: str = "vectors") -> str:
    """Return the name of the table of an embedder: `vectors_minilm_l6_v2_int8_title_25_prose_3f2a`."""
    plain = re.sub(r"[^a-z0-9]+", "_", recipe.lower()).strip("_")
    return f"{what}_{plain[:60]}_{hash_of(recipe)[:4]}"


def reach(uri: str, progress: Progress) -> None:
    """Look once whether a store answers, with or without a table. Raises StoreError."""
    progress(0, 1)
    Table(Remote(uri, REACH_SECONDS), 0, VECTORS).exists()
    progress(1, 1)


def table_at(uri: str, dimension: int, schema: Schema) -> Table:
    """Return a table to publish to; made unless it is there. Raises StoreError."""
    table = Table(Remote(uri, PUBLISH_SECONDS), dimension, schema)
    make_once(uri, schema.table, table.exists, table.create)
    return table


def make_once(
    uri: str, name: str, is_there: Callable[[], bool], create: Callable[[], None]
) -> None:
    """Make a table unless it is there; of two who do, one waits, as it would overwrite the other."""
    if "://" not in uri:
        with files.writing(Path(uri)):
            Path(uri).mkdir(parents=True, exist_ok=True)
            with files.locked(Path(uri) / f".{name}.lock"):
                if not is_there():
                    create()
        return
    if is_there():
        return
    until = time.monotonic() + CREATE_SECONDS  # then whoever claimed it was killed
    if not uri.startswith(_SAFE) and not _claimed(uri, f".{name}-0"):
        while time.monotonic() < until and not is_there():
            time.sleep(LOOK_SECONDS)
    if not is_there():
        create()


def _claimed(uri: str, name: str) -> bool:
    """Put an object into a store unless it is there, and try whether the store keeps that condition."""
    try:
        import obstore
        from obstore.store import from_url
    except ImportError:
        raise StoreError(
            f"{uri}: to publish there needs obstore",
            "install the package again with its extra: `.[publish]`",
        ) from None
    is_claimed = False
    try:
        store = from_url(
            uri, retry_config={"max_retries": 2, "retry_timeout": timedelta(seconds=10)}
        )
        obstore.put(store, name, b"1", mode="create")
        is_claimed = True
        obstore.put(store, name, b"1", mode="create")
        obstore.delete(store, name)
    except obstore.exceptions.AlreadyExistsError:
        return is_claimed
    except Exception as error:  # its errors have no other class in common  # noqa: BLE001
        reason = " ".join(str(error).split())[:160]
        raise StoreError(f"{uri}: {type(error).__name__}: {reason}", STORE_HINT) from None
    raise StoreError(
        f"{uri}: the store ignores If-None-Match, so two who publish would lose rows",
        "use a store that keeps conditional writes, such as S3, GCS or Azure",
    )
