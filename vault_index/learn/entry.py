"""A lesson as an analysis makes it, before it is checked and becomes a proposal."""

from __future__ import annotations

from dataclasses import dataclass

from vault_index.lesson.confidence import DEFAULT_CONFIDENCE
from vault_index.lesson.parts import Parts


@dataclass(frozen=True, slots=True)
class Entry:
    """What was learned. `type` is one of `lesson.parse.TYPES`, `confidence` 1..5.

    `quotes` must stand word for word in the material. `changes` is the id of the lesson that the entry
    is a change of, "" for a new one. `by_rule` marks a draft that no model wrote.
    """

    type: str
    title: str
    parts: Parts
    category: str = ""
    tags: tuple[str, ...] = ()
    confidence: int = DEFAULT_CONFIDENCE
    fires_on: tuple[str, ...] = ()
    silent_on: tuple[str, ...] = ()
    quotes: tuple[str, ...] = ()
    changes: str = ""
    by_rule: bool = False
