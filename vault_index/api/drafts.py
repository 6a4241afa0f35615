"""Questions about a draft lesson, for the commands about proposals: the watcher has what they need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from vault_index.proposals import draft, likeness, review

if TYPE_CHECKING:
    from vault_index.vault import Vault


def check(
    vault: Vault,
    title: str,
    text: str,
    category: str,
    tags: Sequence[str],
    fires_on: Sequence[str],
    by: str,
) -> dict[str, Any]:
    """Check a draft like a commit: the `findings` that are no errors, and what `compare` returns.

    Raises VaultError for an error, and nothing of the draft is kept.
    """
    proposal = review.checked(draft.of(title, text, category, tags, fires_on, by))
    compared = compare(vault, proposal.title, proposal.text)
    findings = review.checked(proposal, compared["categories"]).findings
    return {**compared, "findings": list(findings)}


def compare(vault: Vault, title: str, text: str) -> dict[str, Any]:
    """Compare a draft with lessons and with rejected proposals: see `likeness.of`."""
    return likeness.of(vault, title, text)
