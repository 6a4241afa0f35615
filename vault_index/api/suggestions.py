"""Questions that a vault could be asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vault_index.ask import suggested

if TYPE_CHECKING:
    from vault_index.vault import Vault


def suggest(vault: Vault, count: int = suggested.COUNT) -> dict[str, Any]:
    """Return some `questions` that lessons of the vault answer, of its latest lessons first."""
    return {"questions": suggested.questions(vault, count)}
