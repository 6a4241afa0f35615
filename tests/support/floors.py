"""Floors for an embedder of these tests, as if they had been measured."""

from __future__ import annotations

from vault_index.retrieval import floor
from vault_index.retrieval.floor import Floors, OfEmbedder
from vault_index.vault import Vault

USUAL = OfEmbedder(Floors(0.47, 0.33), Floors(0.44, 0.36), skills=0.51)


def set_floors(vault: Vault, whole: float, line: float) -> None:
    """Say from which evidence on a lesson comes, and its line, at prompts and failures."""
    keep_floors(vault, OfEmbedder(Floors(whole, line), Floors(whole, line), USUAL.skills))


def keep_floors(vault: Vault, floors: OfEmbedder = USUAL) -> None:
    """Keep floors for a vault's embedder."""
    assert vault.embedder is not None
    floor.keep(vault.config.home, vault.embedder.name, floors)
