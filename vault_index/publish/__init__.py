"""Shared by many machines: vectors and rows at an address, in a folder or an object store.

CI publishes (`lessons index --publish`, on Ray if asked); laptops take vectors from there and embed the
rest; a process without a clone searches the rows. The rest of the package calls these functions alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from vault_index import files
from vault_index.check.finding import Trouble
from vault_index.errors import EmbedderError, SettingsError, StoreError
from vault_index.features import IndexTable
from vault_index.publish import vectors
from vault_index.publish.vectors import SharedVectors
from vault_index.store.schema import RECIPE

if TYPE_CHECKING:
    from vault_index.publish.published import PublishedVault
    from vault_index.store.sync import Progress
    from vault_index.vault import Vault


def vectors_of(vault: Vault) -> SharedVectors:
    """Return the vectors at `[index] shared` of the vault's embedder. Raises EmbedderError."""
    config, embedder = vault.config, vault.embedder
    assert embedder is not None
    recipe = f"{embedder.name} {RECIPE}"
    return SharedVectors(config[IndexTable].shared, recipe, embedder.dimension, config.home)


def publish(
    vault: Vault, index: Callable[[], Any], progress_of: Callable[[str], Progress], engine: str
) -> dict[str, Any]:
    """Bring the index up to date by `index`, and publish its vectors and the rows of its lessons.

    The `engine` embeds: this process for "", `ray` or the address of a cluster. Return `uri`, vectors
    `added`, `vectors` in all, `rows` written, `stats`. Raises SettingsError, StoreError, EmbedderError.
    """
    from vault_index.publish import on_ray, published

    with on_ray.embedding(vault, engine) if engine else nullcontext():
        stats = index()
    uri = vault.config[IndexTable].shared
    if not uri:
        hint = "lessons config set index.shared s3://bucket/prefix"
        raise SettingsError("no place to publish to is set", hint)
    opened = vault.open_index()
    if vault.embedder is None or opened.embedder != vault.embedder.name:
        raise EmbedderError("the index has no vectors to publish", "lessons model fetch")
    shared = vectors_of(vault)
    added = shared.publish(opened.store, progress_of("publishing vectors"))
    rows = published.publish_rows(vault, uri, progress_of("publishing lessons"))
    done = {"uri": uri, "added": added, "vectors": shared.count(), "rows": rows}
    return {**done, "stats": asdict(stats)}


def open_index(uri: str) -> PublishedVault:
    """Open a published index with the user's settings. Raises SettingsError."""
    from vault_index.config import load
    from vault_index.publish.published import PublishedVault

    return PublishedVault(uri, load())


def troubles(vault: Vault) -> Iterator[Trouble]:
    """Look whether vectors come from `[index] shared`, and what was refused of them."""
    uri = vault.config[IndexTable].shared
    if not uri or vault.embedder is None:
        return
    noted = files.read_json(vault.config.home / vectors.REFUSED)
    for row in noted["rows"] if noted.get("uri") == uri else ():
        what = f"{uri}: refused row {row}"
        yield Trouble("index", what, "ask who publishes there; it was embedded here")
    try:
        vectors_of(vault).count()
    except StoreError as error:
        yield Trouble("index", error.message, error.hint)
