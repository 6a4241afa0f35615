"""Make the vectors that the rows of an index lack, beside all else.

    files that lack some -> contents -> vectors, without a lock -> rows and manifest, in a moment of it

Rows are written without vectors where an embedder is away, and where it would keep everybody waiting: a
first index, a pull, a book. They are found by their words meanwhile. A process makes the vectors, one at
a time for an index; saves are taken in beside it. A kill at any moment loses nothing: what is made is
kept in the user's cache, and the files are marked in the manifest until their rows have all vectors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from vault_index.errors import EmbedderError
from vault_index.store import filters, manifest, ownership
from vault_index.store.sync import Away, Progress, vectors_from

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np

    from vault_index.store.manifest import Manifest
    from vault_index.store.sync import Source

LOCK = "vectors.lock"
BATCH = 256  # texts between two steps of the counter: two seconds
FILES = 4096  # whose vectors are in memory at once, and written in one commit


@dataclass(frozen=True, slots=True)
class Completed:
    """The result: vectors that were `made`, files that still lack some, and why."""

    embedded: int = 0
    wrote: bool = False  # whether rows got theirs
    lacking: int = 0
    why: str = ""
    busy: bool = False  # another process makes them
    unbuilt: bool = False  # the embedder answers, and the index has no room for vectors
    taken: int = 0  # vectors, from a team's
    shared: str = ""  # why not, or which were refused
    shortened: Sequence[str] = ()  # files of which the model takes only the first part of a text


def complete(source: Source[Any, Any], progress: Progress) -> Completed:
    """Make what is missing in an index, and write it. `progress` gets the vectors made, and all.

    Nothing is done while another process does. Raises WriteError, IndexStateError.
    """
    with ownership.held(source.owner.index_dir, wait=False, name=LOCK) as is_free:
        return _Completion(source, progress).run() if is_free else Completed(busy=True)


def is_running(folder: Path) -> bool:
    """Whether a process makes the vectors of an index. Raises WriteError."""
    with ownership.held(folder, wait=False, name=LOCK) as is_free:
        return not is_free


@dataclass
class _Completion:
    source: Source[Any, Any]
    progress: Progress
    embedded: int = 0
    wrote: bool = False
    tried: set[tuple[str, str]] = field(default_factory=set)  # files with their hashes
    error: EmbedderError | None = None

    def run(self) -> Completed:
        source, embedder = self.source, self.source.owner.embedder
        while True:
            self.wrote |= source.complete_checks()
            index = manifest.current(source.owner.index_dir)
            known = source.load(index) if index else None
            if index is None or known is None or embedder is None or isinstance(embedder, Away):
                return Completed(self.embedded, self.wrote)
            if known.embedder == manifest.NO_EMBEDDER:
                return self._unbuilt(len(known.files))
            hashes = {path: known.files[path].hash for path in manifest.waiting(known)}
            due = [path for path, hash in hashes.items() if (path, hash) not in self.tried]
            if self.error or not due or known.embedder != embedder.name:
                why = f"{self.error.message}; {self.error.hint}".rstrip("; ") if self.error else ""
                return Completed(self.embedded, self.wrote, len(hashes), why)
            some = {path: hashes[path] for path in due[:FILES]}
            self.tried.update(some.items())
            vectors = self._vectors(index, known, list(some), len(due))
            self._write(index, some, vectors)

    def _unbuilt(self, files: int) -> Completed:
        """Ask the embedder, which was away when the index was built."""
        try:
            _ = self.source.owner.embedder and self.source.owner.embedder.dimension
        except EmbedderError as error:
            return Completed(lacking=files, why=f"{error.message}; {error.hint}".rstrip("; "))
        return Completed(lacking=files, unbuilt=True)

    def _vectors(
        self, index: Path, known: Manifest, paths: Sequence[str], due: int
    ) -> Mapping[str, np.ndarray]:
        """Return the vectors of files by content hash; of some, where the embedder fails."""
        source = self.source
        table = source.table(index, known.dimension)
        contents = source.contents_of(table, known, paths)
        cache = source.cache_of(index, known)
        vectors_of = vectors_from(cache, source.owner.embedder, source.make)
        if vectors_of is None:
            return {}
        vectors: dict[str, np.ndarray] = {}
        total, count = round(len(contents) * due / len(paths)), 0
        for batch in _batches(contents, BATCH):
            try:
                vectors |= vectors_of(batch, table.vectors(batch))
            except EmbedderError as error:
                self.error = error
                break
            count += len(batch)
            self.progress(count, total)
        self.embedded += cache.embedded
        return vectors

    def _write(
        self, index: Path, hashes: Mapping[str, str], vectors: Mapping[str, np.ndarray]
    ) -> None:
        """Write vectors into the rows of files that are as they were."""
        source = self.source
        with ownership.held(source.owner.index_dir, wait=True):
            if not vectors or index != manifest.current(source.owner.index_dir):
                return
            known = source.load(index)
            same = [
                path
                for path in manifest.waiting(known)
                if known.files[path].hash == hashes.get(path)
            ]
            table = source.table(index, known.dimension)
            named = [source.folder + path for path in same]
            incomplete, written = table.add_vectors(filters.some_of("path", named), vectors)
            entries = {
                path: replace(known.files[path], lacks=source.folder + path in incomplete)
                for path in same
            }
            self.wrote = True
            source.finish(table, manifest.with_files(known, entries), written)


def _batches(contents: Mapping[str, Any], size: int) -> Iterator[dict[str, Any]]:
    items = iter(contents.items())
    while batch := dict(islice(items, size)):
        yield batch
