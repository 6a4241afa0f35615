"""The question for courses: the documents of a vault with numbered lessons."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from vault_index.ask import courses

if TYPE_CHECKING:
    from vault_index.vault import Vault


def list_(vault: Vault) -> dict[str, Any]:
    """List the courses, by title: `courses`, each with its `lessons` in their order."""
    return {"courses": [asdict(course) for course in courses.courses(vault)]}
