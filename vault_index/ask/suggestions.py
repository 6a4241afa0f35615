"""Questions to begin with, from the prompts that lessons are for: the vault answers each."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from vault_index.hotpath import chatter
from vault_index.recall import allowed, ratings
from vault_index.retrieval.hit import Query
from vault_index.store import filters
from vault_index.text import quote

if TYPE_CHECKING:
    from vault_index.vault import Vault
from vault_index.ask.passages import CANDIDATES, MAX_PASSAGES, split_at_floor

COUNT = 6
MAX_TRIED = 6  # lessons for each question
MAX_SUGGESTED_CHARS = 120  # a longer question is not taken in at a glance
_SUGGESTING = ("lesson_id", "fires_on", "categories", "created_at", "updated_at")
_NEVER = datetime.min.replace(tzinfo=UTC)


def suggested(vault: Vault, count: int = COUNT) -> list[str]:
    """Return taught prompts of lessons: the latest first, and of each category one before two.

    Each finds its lesson above the floor. Lessons that are withheld, or that somebody called wrong,
    suggest nothing. Raises IndexStateError without an index.
    """
    where = filters.all_of(filters.WHOLE, filters.FOR_AGENTS)
    taught = [row for row in vault.open_index().store.rows(_SUGGESTING, where) if row["fires_on"]]
    wrong = ratings.wrong(vault, {row["lesson_id"] for row in taught}) if taught else {}
    rows = [row for row in taught if row["lesson_id"] not in wrong]
    rows.sort(key=lambda row: str(row["lesson_id"]))
    rows.sort(key=lambda row: row["updated_at"] or row["created_at"] or _NEVER, reverse=True)
    by_category = {next(iter(row["categories"] or ()), ""): row for row in reversed(rows)}
    firsts = {row["lesson_id"] for row in by_category.values()}
    rows.sort(key=lambda row: row["lesson_id"] not in firsts)
    questions: dict[str, None] = {}
    for lesson in rows[: MAX_TRIED * count]:
        answered = (
            each for each in _asking(lesson) if _is_answered(vault, each, lesson["lesson_id"])
        )
        questions |= dict.fromkeys(itertools.islice(answered, 1))
        if len(questions) == count:
            break
    return list(questions)


def _asking(row: Mapping[str, Any]) -> list[str]:
    lines = [" ".join(quote.clean(prompt).split()) for prompt in row["fires_on"]]
    return [line for line in lines if 0 < len(line) <= MAX_SUGGESTED_CHARS]


def _is_answered(vault: Vault, question: str, lesson: str) -> bool:
    if chatter.why_skipped(question):
        return False
    wanted = Query(question, CANDIDATES, for_agent=True, weighted=True)
    hits = allowed.only_trusted(vault, split_at_floor(vault, wanted)[0])
    return lesson in [hit.lesson_id for hit in hits[:MAX_PASSAGES]]
