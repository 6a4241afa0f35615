"""What a watcher knows of itself, and what tells it that things changed around it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import vault_index
from vault_index import files
from vault_index.stats import Stats


@dataclass(slots=True)
class State:
    """What `lessons watch --status` tells, and when things were last done (monotonic)."""

    started: float = field(default_factory=time.monotonic)
    active: float = field(default_factory=time.monotonic)
    swept: float = 0.0
    sweep_took: float = 0.0
    wrote: float | None = None  # since the last tidying
    questions: int = 0
    begun: int = 0  # reconciles
    finished: int = 0
    last: str = ""
    trouble: str = ""
    problems: list[str] = field(default_factory=list)  # files that are not in the index as they are

    def take(self, stats: Stats) -> list[str]:
        """Note what a reconcile did; return what there is to say of it."""
        if not stats.busy and not stats.pending:
            self.trouble = ""
            self.problems = [
                f"warning: {one.path}:{one.line}: {one.message}" for one in stats.problems
            ]
        if not stats.wrote:
            return []
        self.wrote = time.monotonic()
        self.last = f"{stats} in {stats.seconds:.2f} s"
        return [self.last, *(f"{one.path}:{one.line}: {one.message}" for one in stats.problems)]

    def as_json(self) -> dict[str, Any]:
        """Return what is told of it."""
        return {
            "seconds": round(time.monotonic() - self.started),
            "questions": self.questions,
            "last": self.last,
            "trouble": self.trouble,
        }


def stamp(file: Path) -> tuple[int, ...]:
    """Return what differs after any change of a file; () where there is none."""
    try:
        return files.stamp_of(file.stat())
    except OSError:
        return ()


def package() -> list[tuple[str, tuple[int, ...]]]:
    """Return what an upgrade of this package changes: sizes and mtimes. A backup sets ctimes."""
    folder = Path(vault_index.__file__).parent
    return sorted((str(file), stamp(file)[:2]) for file in folder.rglob("*.py"))
