"""A hit, as tests of what an agent gets begin with it."""

from __future__ import annotations

from datetime import UTC, datetime

from vault_index.retrieval.hit import Hit

LESSON = Hit(
    lesson_id="devops/heap",
    path="lessons/devops/heap.md",
    title="Heap",
    text="Raise the heap.",
    categories=("devops",),
    tags=(),
    type="",
    confidence=3,
    author="Ada Lovelace",
    created_at=None,
    updated_at=datetime(2026, 11, 20, tzinfo=UTC),
    score=0.8,
    cosine=0.7,
    full_text=0.1,
)
