"""One engine that makes an index equal to files: to lessons, and to the journal's sessions.

    compare -> read -> vectors -> table -> what follows from the rows -> manifest

A `Source` is what differs between indexes: how its files are compared, read and embedded, and what is
derived from their rows. All else is here. A kill after each step leaves this (the lock goes with the
process):

    step           on disk                  repaired by
    -------------  -----------------------  -------------------------------------------------------
    compare, read  nothing                  -
      |
    mark_dirty     dirty.json               the next sync: `manifest.load` calls the files in it
      |                                     unknown, so they are read again, or removed
    table.replace  rows that the manifest   the same: the rows of these files are compared once more
      |            does not know of
      | .. and before each batch but the first one
      |  save      a manifest of the last   the next sync goes on with the files that are missing
      |            batch
      |  mark_dirty                         as above
      |
    derived        tables newer or older    the next full pass: `manifest.load` calls all of them
      |            than the rows            stale as long as there is a dirty.json
    manifest.save  all of it                -  (dirty.json goes last: a kill before that repeats work)

A rebuild takes the same steps in the folder `building`, which nobody reads, and the next rebuild
resumes it. One that a person asked for goes on in `rebuilding`, while saves are written to the index in
force; at its end, under the lock, it takes them in. After its rename and before `current` names it, it is
an index that nobody reads: the next rebuild removes it. Readers stay at the version of the tables that
they opened until the manifest is another one.

More than `MANY` vectors are not waited for: the rows are written without, and are found by their words
until `completing` has made them.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from vault_index import files
from vault_index.errors import EmbedderError, IndexStateError, LaterError
from vault_index.store import filters, manifest, ownership
from vault_index.store.lance import Table
from vault_index.store.manifest import FileEntry, Manifest, Problem, ReadFile
from vault_index.store.schema import VECTOR, Schema

if TYPE_CHECKING:
    import numpy as np

    from vault_index.config import Config

ASKED_FOR = "asked for"  # the reason of a rebuild: nothing that is kept is believed
REBUILD_LOCK = "rebuild.lock"  # who builds an index aside, while others may write the one in force
DAMAGED = "the index was damaged"
MANY = 128  # vectors: so many are made in two seconds, while rows are written; more of them later
# where a setting comes from that holds for one command
FOR_ONE_COMMAND = ("LESSONS_EMBEDDER", "LESSONS_OLLAMA_MODEL", "flags")

Progress = Callable[[int, int], None]  # (done, to do)
# what is embedded, by content hash, and the vectors that are known -> the vectors of all
Vectors = Callable[[Mapping[str, Any], Mapping[str, "np.ndarray"]], Mapping[str, "np.ndarray"]]


@dataclass(frozen=True, slots=True)
class Stats:
    """The result of a sync, in files; `embedded` counts passages."""

    added: int = 0
    changed: int = 0
    moved: int = 0
    removed: int = 0
    unchanged: int = 0
    embedded: int = 0
    taken: int = 0  # passages whose vectors came from `[index] shared`
    shared: str = ""  # why vectors were not taken from there, or which were refused
    no_authors: str = ""  # why git did not say who wrote what
    no_vectors: str = ""  # why what is new has no vectors: the embedder failed
    lacking: int = 0  # files that wait for the vectors of some rows
    unchecked: int = 0  # files that are still to be checked
    refiled: int = 0  # passages of lessons whose category the classifier now proposes otherwise
    skills: int | None = None  # how many there are, if any of them changed
    pending: int = 0  # files left for later: more than the caller has time for
    unbuilt: str = ""  # why there is no index yet, for a caller that has no time to build one
    owes: bool = False  # a quick pass left something to a full one
    busy: bool = False  # another process is writing
    rebuilt: str = ""  # why the whole index was rebuilt, if it was
    seconds: float = 0.0
    problems: list[Problem] = field(default_factory=list)

    @property
    def wrote(self) -> bool:
        some = self.added or self.changed or self.moved or self.removed or self.refiled
        return bool(some or self.embedded or self.rebuilt or self.skills is not None)

    @property
    def is_unfinished(self) -> bool:
        """Whether some rows were written before their vectors were made, or their files checked."""
        return bool(self.lacking or self.unchecked)

    def __str__(self) -> str:
        names = ("added", "changed", "moved", "removed", "unchanged", "pending")
        parts = [f"{getattr(self, name)} {name}" for name in names if getattr(self, name)]
        if self.skills is not None:
            parts.append(f"{self.skills} skills")
        taken = f", {self.taken} taken" if self.taken else ""
        return f"{', '.join(parts) or 'no lessons'}; {self.embedded} embedded{taken}"


class Embedding(Protocol):
    """The parts of an embedder that an index records."""

    @property
    def name(self) -> str:
        """Return its name."""

    @property
    def dimension(self) -> int:
        """The length of its vectors."""

    def embed_documents(self, texts: Sequence[str]) -> np.ndarray:
        """Return a unit vector for each text. Raises EmbedderError."""


@dataclass(frozen=True, slots=True)
class Away:
    """The embedder of an index, in the place of one that does not answer."""

    name: str
    dimension: int
    error: EmbedderError

    def embed_documents(self, _texts: Sequence[str]) -> np.ndarray:
        raise self.error

    embed_queries = embed_documents

    def knows(self, _text: str) -> bool:
        return True


class Owner(Protocol):
    """A vault or the journal."""

    @property
    def index_dir(self) -> Path:
        """The folder of its indexes."""

    @property
    def embedder(self) -> Embedding | None:
        """The embedder, opened when it is first asked for. Raises EmbedderError."""

    @property
    def config(self) -> Config:
        """The settings."""


class Cache(Protocol):
    """Vectors that are kept by the content they are of."""

    @property
    def embedded(self) -> int:
        """Return the number of vectors that were made."""

    def known_of(
        self, contents: Mapping[str, Any], known: Mapping[str, np.ndarray]
    ) -> Mapping[str, np.ndarray]:
        """Return the vectors of contents that are known or kept."""

    def get_or_make(
        self,
        make: Callable[[list[Any]], Any],
        contents: Mapping[str, Any],
        known: Mapping[str, np.ndarray],
    ) -> Mapping[str, np.ndarray]:
        """Return the vectors of all contents."""


E = TypeVar("E", bound=Embedding)


def vectors_from(cache: Cache, embedder: E | None, make: Callable[[E, Any], Any]) -> Vectors | None:
    """Return the function that gives rows their vectors; None without an embedder.

    The embedder makes those that are not kept; one that is away, and more than a cache's `at_most`, makes
    none.
    """
    if embedder is None:
        return None
    if isinstance(embedder, Away):
        return cache.known_of
    make_vectors = partial(make, embedder)

    def vectors(
        contents: Mapping[str, Any], known: Mapping[str, np.ndarray]
    ) -> Mapping[str, np.ndarray]:
        try:
            return cache.get_or_make(make_vectors, contents, known)
        except LaterError:
            return cache.known_of(contents, known)

    return vectors


T = TypeVar("T")
Changes = TypeVar("Changes", bound=Sized)
Result = TypeVar("Result", bound=Stats)


@dataclass(frozen=True, slots=True)
class Work(Generic[Changes]):
    """An index, what it was built from, and how the files differ from that.

    `reason` is why it is built from nothing, "" if it is not.
    """

    index: Path
    manifest: Manifest
    changes: Changes
    reason: str = ""


class Source(ABC, Generic[Changes, Result]):
    """The files of an index, its table, and the version of its rows and of what is embedded."""

    columns: Schema
    schema: int
    to_change = "run `lessons index --rebuild` to change the index"  # to another embedder
    starts_by_words = True  # whether a first index is made without an embedder that fails
    rebuilds_aside = False  # whether saves are taken in while a rebuild that was asked for goes on
    folder = ""  # in front of a file's path in its rows

    def __init__(self, owner: Owner) -> None:
        self.owner = owner
        self.started = time.monotonic()

    @abstractmethod
    def compare(self, known: Manifest, *, rebuild: bool = False) -> Changes:
        """Compare the files with a manifest; the result's length is the number of files that differ."""

    @abstractmethod
    def with_embedder(self, embedder: Away | None) -> Source[Changes, Result]:
        """Return the same source with another embedder."""

    @abstractmethod
    def cache_of(self, index: Path, known: Manifest) -> Cache:
        """Return the vectors that are kept, to be completed however many are missing."""

    @abstractmethod
    def make(self, embedder: Any, contents: list[Any]) -> Iterable[np.ndarray]:
        """Embed contents: a unit vector float32[dimension] for each. Raises EmbedderError."""

    @abstractmethod
    def contents_of(self, table: Table, known: Manifest, paths: Sequence[str]) -> dict[str, Any]:
        """Return the embedded contents of files, by content hash, in the order of the files."""

    def complete_checks(self) -> bool:
        """Check the files that are not checked yet; whether rows were written."""
        return False

    @abstractmethod
    def finish(self, table: Table, after: Manifest, written: int) -> None:
        """Save the manifest after so many rows got their vectors; the caller holds the lock."""

    @abstractmethod
    def is_current(self, work: Work[Changes]) -> bool:
        """Whether nothing is to be done."""

    @abstractmethod
    def nothing(self, work: Work[Changes] | None) -> Result:
        """Return the result where nothing was done; of an index that is current if there is work."""

    @abstractmethod
    def update(self, work: Work[Changes]) -> Result:
        """Write changed rows and derived tables; the caller holds the lock."""

    def sync_or_by_words(self, *, rebuild: bool = False, **how: Any) -> Result:
        """Sync; where the embedder fails, by words, and what is new gets its vectors later.

        An index that has no vectors, or is the first one, is made without. Raises EmbedderError where
        a rebuild was asked for that would lose vectors.
        """
        try:
            return self.sync(rebuild=rebuild, **how)
        except EmbedderError as error:
            index = manifest.current(self.owner.index_dir)
            known = self.load(index) if index else None
            if known is None and not self.starts_by_words:
                raise
            away = None
            if known and known.embedder != manifest.NO_EMBEDDER:
                if rebuild or known.schema != self.schema:
                    raise
                away = Away(known.embedder, known.dimension, error)
            stats = self.with_embedder(away).sync(**how)
            if isinstance(error, LaterError):
                return replace(stats, lacking=len(known.files) if known else 0)
            return replace(stats, no_vectors=f"{error.message}; {error.hint}".rstrip("; "))

    def sync(
        self, *, rebuild: bool = False, wait: bool = True, at_most: int | None = None
    ) -> Result:
        """Bring the index up to date.

        With more than `at_most` changed files, or without `wait` while another process is writing,
        nothing is done.
        """
        folder = self.owner.index_dir
        if rebuild and self.rebuilds_aside and manifest.current(folder) is not None:
            return self._timed(self._rebuild_aside(wait=wait))
        version, reason, work = (None, ASKED_FOR, None) if rebuild else self._look()
        if work and self.is_current(work):
            return self._timed(self.nothing(work))
        if at_most is not None and (work is None or len(work.changes) > at_most):
            changes = work.changes if work else self.compare(Manifest(self.schema, "", 0))
            unbuilt = "" if work else reason
            return replace(self.nothing(None), pending=len(changes), unbuilt=unbuilt)
        with ownership.held(folder, wait=wait) as is_free:
            if not is_free:
                return replace(self.nothing(None), busy=True)
            if not rebuild and (work is None or self._is_outdated(work.index, version)):
                _, reason, work = self._look()
            if work is None:
                return self.rebuild(reason)
            try:
                return self._timed(self.update(work))
            except IndexStateError:
                return self.rebuild(DAMAGED)

    def rebuild(
        self, reason: str, *, resume: bool = True, keep_seconds: float = manifest.KEEP_OLD_SECONDS
    ) -> Result:
        """Build a new index beside the one in force, then swap. An interrupted build is resumed.

        The caller holds the lock.
        """
        building = self._start_building(manifest.BUILDING, resume=resume and reason != ASKED_FOR)
        known = self.load(building)
        stats = self.update(Work(building, known, self.compare(known, rebuild=True), reason))
        manifest.put_in_force(building, keep_seconds=keep_seconds)
        return self._timed(replace(stats, rebuilt=reason))

    def _rebuild_aside(self, *, wait: bool) -> Result:
        """Build a new index while others write the one in force; the lock is held for the swap alone.

        It takes in all saves of that time before the swap.
        """
        folder = self.owner.index_dir
        with ownership.held(folder, wait=wait, name=REBUILD_LOCK) as is_only:
            if not (is_only and self._is_free(wait=wait)):
                return replace(self.nothing(None), busy=True)
            building = self._start_building(manifest.REBUILDING, resume=False)
            known = self.load(building)
            changes = self.compare(known, rebuild=True)
            stats = self.update(Work(building, known, changes, ASKED_FOR))
            with ownership.held(folder, wait=True):
                known = self.load(building)
                since = Work(building, known, self.compare(known))
                if not self.is_current(since):
                    stats = _with_more(stats, self.update(since))
                manifest.put_in_force(building)
        return replace(stats, rebuilt=ASKED_FOR)

    def _is_free(self, *, wait: bool) -> bool:
        with ownership.held(self.owner.index_dir, wait=wait) as is_free:
            return is_free

    def _timed(self, stats: Result) -> Result:
        return replace(stats, seconds=time.monotonic() - self.started)

    # which index is in force, and where the next one is built

    @property
    def embedder(self) -> str:
        return self.owner.embedder.name if self.owner.embedder else manifest.NO_EMBEDDER

    def table(self, index: Path, dimension: int) -> Table:
        return Table(index, dimension, self.columns)

    def load(self, index: Path) -> Manifest:
        return manifest.load(index, self.schema)

    def _look(self) -> tuple[files.Stamp | None, str, Work[Changes] | None]:
        """Return the version of the index in force, and its work or why it has to be rebuilt."""
        index = manifest.current(self.owner.index_dir)
        version = manifest.version(index) if index else None
        reason, known = self._why_rebuild(index)
        if index is None or known is None:
            return version, reason, None
        return version, "", Work(index, known, self.compare(known))

    def _why_rebuild(self, index: Path | None) -> tuple[str, Manifest | None]:
        """Return the reason for a rebuild, or the manifest. Raises IndexStateError for a newer index."""
        if index is None:
            return "first index", None
        try:
            recorded = self.load(index)
        except IndexStateError as error:
            if error.newer:
                raise
            return error.message, None
        if recorded.schema != self.schema:
            return f"the index had schema {recorded.schema}, now it is {self.schema}", None
        now = self.embedder
        if recorded.embedder != now:
            self._refuse_for_one_command(recorded, now)
            if recorded.embedder == manifest.NO_EMBEDDER:
                self.refuse_silent_embedder()
            return f"the index was built with {recorded.embedder}, now it is {now}", None
        is_whole = self.table(index, recorded.dimension).exists()
        return ("", recorded) if is_whole else (DAMAGED, None)

    def refuse_silent_embedder(self) -> None:
        """Raise EmbedderError where the embedder does not answer: words go on serving till it does."""
        if self.owner.embedder is not None:
            _ = self.owner.embedder.dimension

    def _refuse_for_one_command(self, known: Manifest, now: str) -> None:
        """Raise EmbedderError where the setting of one command asks for another embedder.

        An index without vectors may wait for the embedder that its setting named.
        """
        config, recorded = self.owner.config, known.embedder
        if recorded == manifest.NO_EMBEDDER and known.setting in ("", config.embedder):
            return
        origins = config.origins
        is_model = all(name.startswith("ollama/") for name in (recorded, now))
        names = ("embedder", "ollama_model") if is_model else ("embedder",)
        variables = [origins.get(name, "") for name in names]
        variable = next((name for name in variables if name in FOR_ONE_COMMAND), "")
        if variable:
            message = f"the index was built with {recorded}, {variable} asks for {now}"
            raise EmbedderError(message, self.to_change)

    def _is_outdated(self, index: Path, version: files.Stamp | None) -> bool:
        """Whether somebody wrote since this version, or was writing then; the caller holds the lock."""
        if index != manifest.current(self.owner.index_dir):
            return True
        return manifest.version(index) != version or manifest.is_dirty(index)

    def _start_building(self, name: str, *, resume: bool) -> Path:
        """Return the next index's folder, maybe with an interrupted build. Raises WriteError."""
        building = self.owner.index_dir / name
        if resume and self._can_resume(building):
            return building
        ownership.remove_tree(building)
        with files.writing(building):
            building.mkdir(mode=0o700)
        dimension = self.owner.embedder.dimension if self.owner.embedder else 0
        self.table(building, dimension).create()
        setting = self.owner.config.embedder
        manifest.save(building, Manifest(self.schema, self.embedder, dimension, setting))
        return building

    def _can_resume(self, building: Path) -> bool:
        """Whether an interrupted build left what can be brought up to date like any other index."""
        try:
            return ownership.is_folder(building) and not self._why_rebuild(building)[0]
        except IndexStateError:  # of a newer version
            return False


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes the rows of files that were read. `vectors` embeds rows, unless it is None."""

    table: Table
    vectors: Vectors | None
    max_rows: int  # of a batch, or just above
    folder: str = ""  # in front of a file's path in its rows
    vectors_in: Table | None = None  # that has vectors already, if not the table itself

    def write(
        self,
        before: Manifest,
        read: Iterable[ReadFile],
        pending: Collection[str],
        removed: Collection[str],
        tell: Callable[[Sequence[ReadFile], int], None] = lambda _files, _rows: None,
    ) -> Manifest:
        """Write a commit a batch, and take out the rows of removed files after the last.

        `pending` are the paths whose rows may change. `tell` gets the files of each batch and how
        many rows differed. Return the manifest to save: the one on disk lacks the last batch.
        """
        after, unwritten = before, {*pending, *removed}
        if unwritten:
            manifest.mark_dirty(self.table.index, unwritten)
        batches = self._batches(read)
        many = len(unwritten) > self.max_rows
        for number, batch in enumerate(_ahead(batches) if many else batches):
            if number:  # so that a kill does not lose the batch before
                manifest.save(self.table.index, after)
                manifest.mark_dirty(self.table.index, unwritten)
            changed = [file for file in batch if file.rows is not None]
            old_paths = [self.folder + file.path for file in changed if file.path in before.files]
            all_rows = [row for file in changed for row in file.rows or ()]
            where = filters.any_of("path", old_paths) if old_paths else ""
            rows, stale = self.table.differing(all_rows, where)
            if self.vectors is not None:
                rows = [*rows, *_lacking_rows(changed, before, rows)]
            contents = {key: what for file in changed for key, what in file.contents.items()}
            written, without = self._with_vectors(rows, contents)
            self.table.replace(written, stale)
            after = manifest.with_files(
                after, {file.path: _with_lack(file, without) for file in batch}
            )
            unwritten -= {file.path for file in batch}
            tell(batch, len(rows))
        if removed:
            self.table.delete(filters.any_of("path", (self.folder + path for path in removed)))
            after = manifest.with_files(after, {}, removed)
        return after

    def _batches(self, read: Iterable[ReadFile]) -> Iterator[list[ReadFile]]:
        batch: list[ReadFile] = []
        size = 0
        for file in read:
            batch.append(file)
            size += len(file.rows or ())
            if size >= self.max_rows:
                yield batch
                batch, size = [], 0
        if batch:
            yield batch

    def _with_vectors(
        self, rows: Sequence[Mapping[str, Any]], contents: Mapping[str, Any]
    ) -> tuple[Sequence[Mapping[str, Any]], frozenset[str]]:
        """Return rows with vectors, and the content hashes of those that have none: all zeros."""
        if self.vectors is None or not rows:
            return rows, frozenset()
        wanted = {row["content_hash"]: contents[row["content_hash"]] for row in rows}
        vectors = self.vectors(wanted, (self.vectors_in or self.table).vectors(wanted))
        none = [0.0] * self.table.dimension
        with_all = [{**row, VECTOR: vectors.get(row["content_hash"], none)} for row in rows]
        return with_all, frozenset(wanted.keys() - vectors.keys())


def _with_more(stats: Result, later: Result) -> Result:
    """Return the result of a rebuild with what was taken in at its end."""
    return replace(
        stats,
        added=stats.added + later.added,
        embedded=stats.embedded + later.embedded,
        lacking=later.lacking,
        unchecked=later.unchecked,
        problems=later.problems,
    )


def _lacking_rows(
    read: Iterable[ReadFile], before: Manifest, rows: Iterable[Mapping[str, Any]]
) -> Iterator[Mapping[str, Any]]:
    """Yield the rows that are in the table as they are, of files that lacked vectors."""
    differing = {row["id"] for row in rows}
    for file in read:
        entry = before.files.get(file.path)
        if entry is not None and entry.lacks:
            yield from (row for row in file.rows or () if row["id"] not in differing)


def _with_lack(file: ReadFile, without: Collection[str]) -> FileEntry:
    if file.rows is None:
        return file.entry
    lacks = any(row["content_hash"] in without for row in file.rows)
    return replace(file.entry, lacks=lacks)


def _ahead(items: Iterator[T]) -> Iterator[T]:
    """Yield items, each of which another thread makes while the one before it is embedded."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = thread.submit(next, items, None)
            yield item


def fill(
    table: Table, rows: Sequence[Mapping[str, Any]], vectors: Sequence[np.ndarray | None]
) -> None:
    """Make rows the only ones of a small table that is derived from others, or of few files.

    `vectors` are theirs, in a table that has some; None for one that is still to be made.
    """
    if table.dimension:
        none = [0.0] * table.dimension
        pairs = zip(rows, vectors, strict=True)
        rows = [{**row, VECTOR: none if vector is None else vector} for row, vector in pairs]
    if not table.exists():
        table.create()
    table.merge(rows, delete=True)
    table.fold()
