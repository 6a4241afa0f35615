"""Lessons beside each other: near-duplicates, and categories by likeness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from vault_index.index import classifier
from vault_index.search import duplicates

if TYPE_CHECKING:
    from vault_index.vault import Vault


def compare(vault: Vault, paths: Sequence[str]) -> dict[str, Any]:
    """Compare lesson files with the index: `findings`, and the `categories` of all other lessons.

    `paths` are relative to the vault's folder. The findings are near-duplicates and prompts of a
    lesson's own that do not find it, or do and should not.
    """
    return duplicates.against_index(vault, paths)


def classify(vault: Vault) -> dict[str, Any]:
    """Propose categories for the lessons without any: `proposals`, which `accept` takes."""
    return {"proposals": [asdict(proposal) for proposal in classifier.propose(vault)]}
