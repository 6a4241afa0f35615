"""The tree of categories with its counts, as a filter."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

MAX_SHOWN = 200  # categories: the largest, or the tree weighs more than the hits
MAX_OPEN = 30  # categories: a larger tree is closed below its first level


@dataclass(slots=True)
class Branch:
    """A category and those below it."""

    path: str
    name: str
    count: int
    is_chosen: bool
    is_open: bool = False
    below: list[Branch] = field(default_factory=list)


def tree_of(counts: Mapping[str, int], chosen: Sequence[str]) -> dict[str, Any]:
    """Return the `branches` of the first level, and how many smaller categories are `left_out`."""
    shown = _largest(counts, chosen)
    branches: dict[str, Branch] = {}
    top: list[Branch] = []
    for path in sorted(shown):
        above, _, name = path.rpartition("/")
        branch = Branch(path, name, counts.get(path, 0), path in chosen)
        branch.is_open = len(shown) <= MAX_OPEN or _is_above(path, chosen)
        branches[path] = branch
        siblings = branches[above].below if above in branches else top
        siblings.append(branch)
    return {"branches": top, "left_out": len(set(counts) - shown)}


def _largest(counts: Mapping[str, int], chosen: Sequence[str]) -> set[str]:
    """Return the categories to show, with those above them."""
    ordered = sorted(counts, key=lambda path: (-counts[path], path))
    shown = {*ordered[:MAX_SHOWN], *chosen}  # what is above another is at least as large
    return shown | {"/".join(path.split("/")[:end]) for path in chosen for end in range(1, 5)}


def _is_above(path: str, chosen: Collection[str]) -> bool:
    return any(other.startswith(f"{path}/") for other in chosen)
