"""The journal's index, opened for reading."""

from __future__ import annotations

from dataclasses import dataclass

from vault_index import files
from vault_index.errors import IndexStateError
from vault_index.journal.journal import Journal
from vault_index.store import manifest
from vault_index.store.schema import JOURNAL
from vault_index.store.warm_table import WarmTable

SCHEMA = 1  # raise it when rows or what is embedded change: the index is rebuilt


@dataclass(frozen=True, slots=True)
class OpenJournal:
    """The journal's table, opened for reading. `embedder` is the name it was built with."""

    store: WarmTable
    embedder: str
    sessions: int
    version: files.Stamp  # of the manifest


def open_index(journal: Journal) -> OpenJournal:
    """Open the index in force; reopen it when it was swapped or written since.

    Raises IndexStateError if there is none, or none that this version can read.
    """
    index = manifest.current(journal.index_dir)
    if index is None:
        raise IndexStateError("the journal has no index yet", "run `lessons journal import`")
    version = manifest.version(index)
    last = journal.opened
    if last is None or last.version != version or last.store.index != index:
        recorded = manifest.load(index, SCHEMA)
        if recorded.schema != SCHEMA:
            raise IndexStateError(
                "the journal's index is of an older version", "run `lessons journal import`"
            )
        table = WarmTable(index, recorded.dimension, JOURNAL)
        if last is not None and last.store.index == index:
            table.follow(last.store)
        last = OpenJournal(table, recorded.embedder, len(recorded.files), version)
        journal.opened = last
    return last
