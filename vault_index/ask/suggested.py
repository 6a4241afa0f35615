"""Questions to begin with: from the vault's own titles, and the prompts that its lessons are for."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from vault_index.store import filters
from vault_index.text.characters import clean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vault_index.vault import Vault

COUNT = 6
MAX_CHARS = 120  # a longer question is not taken in at a glance
_COLUMNS = ("lesson_id", "title", "document", "fires_on", "categories", "created_at", "updated_at")
_NEVER = datetime.min.replace(tzinfo=UTC)


def questions(vault: Vault, count: int = COUNT) -> list[str]:
    """Return questions that lessons answer: the latest first, and of each category one before two.

    Lessons that are withheld suggest nothing. Raises IndexStateError without an index.
    """
    where = filters.all_of(filters.WHOLE, filters.FOR_AGENTS)
    rows = vault.open_index().store.rows(_COLUMNS, where)
    rows.sort(key=lambda row: str(row["lesson_id"]))
    rows.sort(key=lambda row: row["updated_at"] or row["created_at"] or _NEVER, reverse=True)
    first: dict[str, None] = {}
    others: dict[str, None] = {}
    seen: set[str] = set()
    for row in rows:
        question = _question(row)
        if question:
            category = next(iter(row["categories"] or ()), "")
            (others if category in seen else first)[question] = None
            seen.add(category)
        if len(first) >= count:
            break
    return list(dict.fromkeys([*first, *others]))[:count]


def _question(row: Mapping[str, Any]) -> str:
    """Return the question that a lesson answers, "" for none that is short enough."""
    prompts = [_line(prompt) for prompt in row["fires_on"] or ()]
    named = row["title"]
    if row["document"] not in ("", None, row["title"]):
        named = f"{row['title']} ({row['document']})"
    asked = [*prompts, f"What do we know about: {_line(named)}?"]
    return next((each for each in asked if 0 < len(each) <= MAX_CHARS), "")


def _line(text: str) -> str:
    return " ".join(clean(text).split())
