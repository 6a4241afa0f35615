"""Load what a search needs before it is asked for.

Python loads modules when they are needed, the embedder its model at the first text, and LanceDB a
table and the words of its text index when they are read.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from weakref import WeakKeyDictionary

import vault_index.api.search  # noqa: F401  # `api` would load it at the first prompt
from vault_index.errors import VaultError
from vault_index.index import reconcile
from vault_index.search import above, failures, floor, query
from vault_index.vault import Vault
from vault_index.watch import background_index

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
    if vault.config.embedder != "minilm":  # the server loads its model, too
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
                table.matches(str(row["text"])[:SAMPLE_CHARS], 1)
    floor.in_force(vault)


_loaded_above: WeakKeyDictionary[Vault, object] = WeakKeyDictionary()  # their tables


def take_in_above(vault: Vault) -> None:
    """Bring the indexes of the vaults above up to date, and keep them loaded."""
    for _, other in above.opened(vault):
        with suppress(VaultError):
            stats = reconcile.sync(other, at_most=background_index.FILES_AT_ONCE, wait=False)
            if stats.pending or floor.is_stale(other) or failures.is_stale(other):
                background_index.start(other)
            loaded = other.open_index().store
            if _loaded_above.get(other) is not loaded:
                load_tables(other)
                _loaded_above[other] = loaded
