"""Questions about what a vault holds as a whole: its courses, and lessons in numbers."""

from __future__ import annotations

from datetime import UTC, datetime

from vault_index.api.question import question
from vault_index.retrieval import documents
from vault_index.retrieval.documents import Course, VaultCounts
from vault_index.vault import Vault


@question
def courses(vault: Vault) -> tuple[Course, ...]:
    """List the courses by title, with their lessons."""
    return tuple(documents.courses(vault))


@question
def overview(vault: Vault) -> VaultCounts:
    """Return the vault in numbers."""
    return documents.count(vault, datetime.now(UTC).date())
