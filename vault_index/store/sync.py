"""Which index is in force, whether it can be brought up to date, and where the next one is built.

Lessons and the journal are laid out alike: see `manifest`. They differ in how their files are read and
their rows are written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from vault_index import files
from vault_index.errors import IndexStateError
from vault_index.store import manifest, ownership
from vault_index.store.manifest import Manifest
from vault_index.store.schema import Schema
from vault_index.store.table import Table

T = TypeVar("T")

ASKED_FOR = "asked for"  # the reason of a rebuild: nothing that is kept is believed
DAMAGED = "the index was damaged"


class Embedding(Protocol):
    """The parts of an embedder that an index records."""

    @property
    def name(self) -> str:
        """Return its name."""

    @property
    def dimension(self) -> int:
        """The length of its vectors."""


class Owner(Protocol):
    """A vault or the journal."""

    @property
    def index_dir(self) -> Path:
        """The folder of its indexes."""

    @property
    def embedder(self) -> Embedding | None:
        """The embedder, opened when it is first asked for. Raises EmbedderError."""


@dataclass(frozen=True, slots=True)
class Source:
    """The source of an index, its table, and the version of its rows and of what is embedded."""

    owner: Owner
    columns: Schema
    schema: int

    @property
    def embedder(self) -> str:
        """The name of its embedder. Raises EmbedderError."""
        return self.owner.embedder.name if self.owner.embedder else manifest.NO_EMBEDDER

    def table(self, index: Path, dimension: int) -> Table:
        """Return the table in the folder of an index."""
        return Table(index, dimension, self.columns)

    def load(self, index: Path) -> Manifest:
        """Read the manifest of an index; see `manifest.load`."""
        return manifest.load(index, self.schema)

    def why_rebuild(self, index: Path | None) -> tuple[str, Manifest | None]:
        """Return why an index cannot be brought up to date, or its manifest.

        Raises IndexStateError for an index of a newer version.
        """
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
            return f"the index was built with {recorded.embedder}, now it is {now}", None
        is_whole = self.table(index, recorded.dimension).exists()
        return ("", recorded) if is_whole else (DAMAGED, None)

    def is_outdated(self, index: Path | None, version: files.Stamp | None) -> bool:
        """Whether somebody wrote since this version, or was writing then; the caller holds the lock."""
        if index is None or index != manifest.current(self.owner.index_dir):
            return True
        return manifest.version(index) != version or manifest.is_dirty(index)

    def start_building(self, *, resume: bool) -> Path:
        """Return the folder of the next index: an empty one, or what an interrupted build left.

        The caller holds the lock, and puts it in force. Raises WriteError.
        """
        building = self.owner.index_dir / manifest.BUILDING
        if resume and self._can_resume(building):
            return building
        ownership.remove_tree(building)
        with files.writing(building):
            building.mkdir(mode=0o700)
        dimension = self.owner.embedder.dimension if self.owner.embedder else 0
        self.table(building, dimension).create()
        manifest.save(building, Manifest(self.schema, self.embedder, dimension))
        return building

    def _can_resume(self, building: Path) -> bool:
        """Whether an interrupted build left what can be brought up to date like any other index."""
        try:
            return ownership.is_folder(building) and not self.why_rebuild(building)[0]
        except IndexStateError:  # of a newer version
            return False


def batches(read: Iterable[T], size_of: Callable[[T], int], most: int) -> Iterator[list[T]]:
    """Yield files that were read, so many that a batch has `most` rows or just above."""
    batch: list[T] = []
    size = 0
    for file in read:
        batch.append(file)
        size += size_of(file)
        if size >= most:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
