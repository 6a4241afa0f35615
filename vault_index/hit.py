"""A hit: a lesson or skill that answers a query, with the evidence for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from vault_index.categories import marked


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a file, and the title of the lesson it is of."""

    position: int  # in the file, from 0
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Hit:
    """A lesson or skill and why it was found. `score` is `cosine + full_text`, in absolute units.

    `cosine` is -1..1 (0 without an embedder); `full_text` is 0.01 x BM25. `text` is the best
    passage. `confidence` only orders hits of like score: it is not in `score`. Of a skill `title`
    is the name, `text` what it is for and `type` where it is from: vault, user or project.
    """

    lesson_id: str
    path: str  # from the vault's root
    title: str
    text: str
    categories: tuple[str, ...]
    tags: tuple[str, ...]
    type: str
    confidence: int
    author: str  # of the last commit; "" for what is not committed
    created_at: datetime | None
    updated_at: datetime | None
    score: float
    cosine: float
    full_text: float
    kind: str = "lessons"  # lessons | skills
    document: str = ""  # the title of what the lesson is a part of; its own if of nothing
    link: str = ""
    file_hash: str = ""  # of the file that `text` was read from; for trust, and not in the JSON
    filed_by: str = ""  # who says the categories: author | folder | classifier | nobody
    withheld: str = ""  # why hooks leave it out: an error that `lessons check` finds in its file
    position: int = 0  # of `text` among its file's passages; -1 for a long lesson as a whole

    @property
    def percent(self) -> int:
        """The score for people, 0..99; a sum above 1 is as sure as it gets."""
        return max(0, min(99, round(100 * self.score)))

    @property
    def filed_under(self) -> tuple[str, ...]:
        """The categories as they are shown: one that only the classifier proposes ends with "?"."""
        return marked(self.categories, self.filed_by)

    def as_json(self) -> dict[str, Any]:
        """Give the hit as JSON values; dates are ISO 8601."""
        values = asdict(self)
        del values["file_hash"]
        for key in ("created_at", "updated_at"):
            values[key] = values[key].isoformat() if values[key] else None
        for key in ("score", "cosine", "full_text"):
            values[key] = round(values[key], 4)
        return values

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Hit:
        """Make a hit of what `as_json` gave."""
        known = dict(values)
        for key in ("created_at", "updated_at"):
            known[key] = datetime.fromisoformat(known[key]) if known[key] else None
        for key in ("categories", "tags"):
            known[key] = tuple(known[key])
        return cls(**known)
