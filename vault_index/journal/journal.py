"""The journal of this user: where it is, and its doors, each opened on first use.

    ~/.lessons/journal/                    0700, like all below it; files are 0600
      recorded                             whose sessions are recorded: a folder a line, `*` for all
      <project>/
        project.toml                       which folders and which repository the project is
        <year-month>/<day>-<session>.md    a session: see `session_file`
      .vault_index/                        the index of all this: a cache

One for all vaults: a session belongs to a project, whether that has a vault or not.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from vault_index import embed
from vault_index.config import Config
from vault_index.hotpath import grown
from vault_index.store import ownership

if TYPE_CHECKING:
    import numpy as np

    from vault_index.embed import Embedder
    from vault_index.journal.open_index import OpenJournal

FOLDER = grown.JOURNAL
INDEX = ".vault_index"
PENDING = grown.FORGETTING


class Journal:
    """The first argument of the journal's verbs. `folder` is where it is, made by the first write."""

    def __init__(self, config: Config, embedder: Embedder | None = None) -> None:
        self.config = config
        self.folder: Path = config.home / FOLDER
        self.last_query: tuple[tuple[str, str], np.ndarray] | None = None  # and its vector
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
        """What turns text into vectors; None where only full text is. Raises EmbedderError."""
        return embed.open_embedder(self.config)
