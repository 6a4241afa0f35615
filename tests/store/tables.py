"""Tables for tests: rows of random words, with cells that are empty or null, and LanceDB's package."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from vault_index.store.schema import LessonRow

DIMENSION = 16
WORDS = "heap lock pipe build staging tmux Größe café don't snake_case v1.2.3 migrations".split()


def connect(place: Path) -> Any:
    """Connect to a folder of tables with LanceDB's own package, whatever other processes commit."""
    import lancedb  # takes a second, which only tests that come here pay

    return lancedb.connect(place, read_consistency_interval=timedelta(0))


def some_rows(count: int, seed: int) -> list[LessonRow]:
    """Make rows of random words; as many vectors."""
    chance = random.Random(seed)
    vectors = np.random.default_rng(seed).normal(size=(count, DIMENSION)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    moment = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
    rows = []
    for number in range(count):
        text = " ".join(chance.choices(WORDS, k=chance.randint(0, 30)))
        categories = chance.sample(["devops", "devops/ci", "it's"], k=chance.randint(0, 2))
        rows.append(
            LessonRow(
                id=f"{seed}-{number}@0",
                lesson_id=f"{seed}-{number}",
                path=f"lessons/o'{number % 7}.md",
                title=text[:20],
                text=text,
                fulltext=text,
                categories=categories,
                category_l0=sorted({one.partition("/")[0] for one in categories}),
                position=number,
                is_whole=True,
                taught="",
                confidence=chance.randint(1, 5),
                created_at=chance.choice([None, moment]),
                author=chance.choice(["", "Ada"]),
                content_hash=f"hash {number}",
                vector=vectors[number],
            )
        )
    return rows
