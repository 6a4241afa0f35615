"""The journal of this user: where it is, and its doors, each opened on first use.

    ~/.lessons/state.sqlite                its sessions: see `archive`
    ~/.lessons/journal/                    0700, like all below it; files are 0600
      recorded                             whose sessions are recorded: a folder a line, `*` for all
      .vault_index/                        the index of the sessions: a cache

One for all vaults: a session belongs to a project, whether that has a vault or not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from vault_index import embed, files
from vault_index.config import Config
from vault_index.errors import IndexStateError
from vault_index.hotpath import spool
from vault_index.store import manifest, ownership
from vault_index.store.schema import JOURNAL

if TYPE_CHECKING:
    import numpy as np

    from vault_index.embed import Embedder
    from vault_index.store.reader import Reader

FOLDER = spool.JOURNAL
INDEX = spool.INDEX
PENDING = spool.FORGETTING


class Journal:
    """The first argument of the journal's verbs. `folder` is where it is, made by the first write."""

    def __init__(self, config: Config, embedder: Embedder | None = None) -> None:
        self.config = config
        self.home: Path = config.home
        self.folder: Path = config.home / FOLDER
        self.query_vectors: Mapping[tuple[str, str], np.ndarray] = {}  # of the last ones
        self.opened: OpenJournal | None = None  # see `open_index`
        if embedder is not None:  # a watcher's, which is warm
            self.__dict__["embedder"] = embedder

    def __repr__(self) -> str:
        return f"Journal({str(self.folder)!r})"

    @property
    def index_dir(self) -> Path:
        """The folder of the index. Raises ForeignIndexError if somebody else made it."""
        folder = self.folder / INDEX
        ownership.check(folder)
        return folder

    @cached_property
    def embedder(self) -> Embedder | None:
        """The embedder of the settings; None for full text alone. Raises EmbedderError."""
        return embed.open_embedder(self.config)


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Hold the lock of a journal, or of proposals, whose folder is made if it is missing.

    One thread of all processes has it, and not twice. Readers need none. Raises WriteError.
    """
    files.make_folder(folder)
    with files.locked(folder / ".lock"):
        yield


SCHEMA = 2  # raise it when rows or what is embedded change: the index is rebuilt


@dataclass(frozen=True, slots=True)
class OpenJournal:
    """The journal's table, opened for reading. `embedder` is the name it was built with."""

    store: Reader
    embedder: str
    sessions: int
    version: files.Stamp  # of the manifest
    lacking: int = 0  # sessions whose rows wait for vectors

    @property
    def unmade(self) -> str:
        """Return the reason for a search by words alone, while many vectors are still to be made."""
        return manifest.unmade(self.lacking, self.sessions, "sessions")


def open_index(journal: Journal) -> OpenJournal:
    """Open the index in force; reopen it when it was swapped or written since.

    Raises IndexStateError without one that this version can read.
    """
    from vault_index.store.reader import Reader  # a list of lessons loads no table

    index = manifest.current(journal.index_dir)
    if index is None:
        raise IndexStateError("the journal has no index yet", "run `lessons journal import`")
    version = manifest.version(index)
    last = journal.opened
    if last is None or last.version != version or last.store.index != index:
        recorded = load_manifest(journal, index)
        if recorded.schema != SCHEMA:
            raise IndexStateError(
                "the journal's index is of an older version", "run `lessons journal import`"
            )
        table = Reader(index, recorded.dimension, JOURNAL)
        lacking = len(manifest.waiting(recorded))
        last = OpenJournal(table, recorded.embedder, len(recorded.files), version, lacking)
        journal.opened = last
    return last


def load_manifest(journal: Journal, index: Path) -> manifest.Manifest:
    """Read the manifest of an index of the journal; see `manifest.load`."""
    try:
        return manifest.load(index, SCHEMA)
    except IndexStateError as error:
        hint = f"remove {journal.index_dir}: it is a cache"
        raise IndexStateError(error.message, hint, newer=error.newer) from None
