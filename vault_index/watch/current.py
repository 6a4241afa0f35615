"""The vault as its settings are now, opened and warm, and what shows that it changed.

Python loads modules when they are needed, the embedder its model at the first text, and LanceDB a
table and the words of its text index when they are read: all of it is loaded before a question.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar
from weakref import WeakKeyDictionary

import vault_index
import vault_index.api.search  # `api` would load it at the first prompt
from vault_index import embed, files
from vault_index.embed import Embedder, download
from vault_index.errors import EmbedderError, VaultError
from vault_index.index import reconcile, skills
from vault_index.journal.journal import Journal
from vault_index.search import above, failures, floor, query
from vault_index.vault import Vault, open_vault, stamp_settings
from vault_index.watch import launch

Place = TypeVar("Place", Vault, Journal)


class CurrentVault:
    """The loop opens `vault` again when its embedder changes; questions read it in their threads.

    `unusable` is why the settings as they are now are not in force.
    """

    def __init__(self, root: Path, say: Callable[[str], None], embedder: SharedEmbedder) -> None:
        self.root = root
        self._embedder = embedder
        self._in_force = self._seen = stamp_settings(self.root)  # by questions, by the loop
        self._taking = threading.Lock()
        self.vault = embedder.lend(open_vault(root))
        self._embedding = _embedding(self.vault)
        self.unusable: VaultError | None = None
        self._waited_for: dict[str, list[int]] = {}  # stamps of skills
        self._say = say
        self._warn()

    def take_settings(self) -> None:
        """Put the settings as they are now in force, at a question; broken ones change nothing.

        The index and the embedder stay open. Another embedder is opened by the loop.
        """
        with self._taking:
            now = stamp_settings(self.root)
            if now == self._in_force:
                return
            try:
                config = open_vault(self.root).config
            except VaultError as error:
                self.unusable = error
                self._say(f"error: {error.message}")
            else:
                self.unusable = None
                if config != self.vault.config:
                    self.vault.config = config
                    self._warn()
            self._in_force = now

    def reopen(self) -> None:
        self._seen = stamp_settings(self.root)
        self.take_settings()
        if not self.changes_embedder and not self._lacks_model():
            return
        with contextlib.suppress(VaultError):  # a server that embeds may be away
            opened = self._embedder.lend(open_vault(self.root))
            embedding = _embedding(opened)
            with contextlib.suppress(VaultError):
                warm_up(opened)
            with self._taking:
                opened.config = self.vault.config  # may be newer
                self.vault, self._embedding = opened, embedding

    @property
    def changes_embedder(self) -> bool:
        return _embedding(self.vault) != self._embedding

    def _warn(self) -> None:
        for line in self.vault.config.warnings():
            self._say(line)

    def is_outdated(self) -> bool:
        """Whether the settings changed, or the built-in model came."""
        came = self._lacks_model() and download.is_ready(self.vault.config.home)
        return came or stamp_settings(self.root) != self._seen

    def model_is_due(self) -> bool:
        return self._lacks_model() and download.is_due(self.vault.config)

    def skills_changed(self) -> bool:
        """Whether a SKILL.md was saved: they are few, so comparing all of them will do."""
        with contextlib.suppress(VaultError):
            return skills.stamps(self.vault) != self.vault.open_index().known_skills
        return False

    def skill_saved(self) -> bool:
        """Whether a SKILL.md was saved and no question has waited for it."""
        with contextlib.suppress(VaultError):
            now = skills.stamps(self.vault)
            before, self._waited_for = self._waited_for, now
            return now != before and now != self.vault.open_index().known_skills
        return False

    def _lacks_model(self) -> bool:
        return self.vault.config.is_built_in and self.vault.embedder is None


def _embedding(vault: Vault) -> tuple[str, ...]:
    config = vault.config
    return config.embedder, config.ollama_model, config.ollama_host


class SharedEmbedder:
    """The one built-in embedder in memory, for all vaults and the journal."""

    def __init__(self) -> None:
        self._opened: dict[str, Embedder | None] = {}
        self._opening = threading.Lock()

    def lend(self, place: Place) -> Place:
        """Return a vault or journal with the shared embedder, if its settings want that."""
        if place.config.is_built_in:
            with self._opening:
                name = place.config.embedder
                opened = self._opened.get(name)
                with contextlib.suppress(EmbedderError):  # not installed: each use says so
                    opened = self._opened[name] = opened or embed.open_embedder(place.config)
            if opened is not None:
                place.__dict__["embedder"] = opened
        return place


def stamp_package() -> list[tuple[str, tuple[int, ...]]]:
    """Return what an upgrade of this package changes: sizes and mtimes. A backup sets ctimes."""
    folder = Path(vault_index.__file__).parent
    return sorted((str(file), files.stamp(file)[:2]) for file in folder.rglob("*.py"))


SAMPLE = "load the model"  # any text will do: the first makes CTranslate2 allocate
SAMPLE_CHARS = 200  # of a row, to search for


def warm_up(vault: Vault, first: Callable[[], object] = lambda: None) -> None:
    """Load the model, the tables, the floors and the modules that the first prompt needs.

    `first` is done before the tables are opened, while the model loads. Raises IndexStateError without
    an index.
    """
    with query.embedding(vault, SAMPLE):
        first()
        load_tables(vault)
    if not vault.config.is_built_in:  # the server loads its model, too
        query.embed_ahead(vault, SAMPLE)


def load_tables(vault: Vault) -> None:
    """Open the tables that a prompt searches and read all that a search needs of them.

    After a write too: the tables that were open before keep the old version on disk. Raises
    IndexStateError without an index.
    """
    opened = vault.open_index()
    for table in (opened.store, opened.skills):
        if table.exists():
            table.load(rows=True)
            for row in table.take(range(table.count())[:1]):
                # LanceDB reads its text index when words are searched for
                table.matches(str(row["text"])[:SAMPLE_CHARS])
    floor.in_force(vault)


_loaded_above: WeakKeyDictionary[Vault, object] = WeakKeyDictionary()  # their tables


def take_in_above(vault: Vault) -> None:
    """Bring the indexes of the vaults above up to date, and keep them loaded."""
    for _, other in above.opened(vault):
        with contextlib.suppress(VaultError):
            stats = reconcile.at_once(other, full=True)
            if stats.pending or floor.is_stale(other) or failures.is_stale(other):
                launch.start_index(other)
            loaded = other.open_index().store
            if _loaded_above.get(other) is not loaded:
                load_tables(other)
                _loaded_above[other] = loaded
