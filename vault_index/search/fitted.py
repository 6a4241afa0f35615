"""Floors and the like that are fitted to an index: a file beside it each, read once while it stays."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from vault_index import files
from vault_index.errors import VaultError
from vault_index.store import ownership

if TYPE_CHECKING:
    from vault_index.vault import Vault

REFIT_SHARE = 0.1  # of the lessons changed in number since the fit

# Half of the prompts of a subject that a vault does not answer score below what the titles of its lessons
# score without these lessons, and so do about as many of the highest. But some titles have siblings
# that do answer them, the more the larger a vault is; so the upper half is also taken to be the mirror
# of the lower. With the mean of both .04, .08 and .17 of the unanswered prompts of three subjects pass
# where a tenth should, without the mirror .03, .09 and .14, with it alone .04, .16 and .29.
SMALL = 20  # lessons: fewer say nothing of what lessons of their subject score
MAX_TITLES = 150  # that are asked for, each without its lesson: more take longer and say no more

T = TypeVar("T")
_loaded: dict[Path, tuple[object, Any]] = {}


def load(vault: Vault, name: str, kind: Callable[..., T]) -> T | None:
    """Return what was fitted to the index and saved under a name; None if nothing was yet."""
    try:
        file = vault.open_index().store.index / name
        stamp = files.stamp(file)
        known = _loaded.get(file)
        if known is None or known[0] != stamp:
            known = _loaded[file] = stamp, kind(**json.loads(ownership.read_text(file)))
        fitted: T = known[1]
        return fitted
    except (OSError, ValueError, TypeError, VaultError):
        return None


def save(vault: Vault, name: str, fitted: Any) -> None:
    """Save a dataclass that was fitted to the index. Raises WriteError."""
    index = vault.open_index().store.index
    data = json.dumps(asdict(fitted), ensure_ascii=False).encode()
    files.replace_file(index / name, data)


def has_outgrown(vault: Vault, lessons: int) -> bool:
    """Whether a vault has so many more or fewer lessons that something is to be fitted again."""
    return abs(vault.open_index().lessons - lessons) > REFIT_SHARE * max(1, lessons)


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value that `share` of the values do not exceed, interpolated; 0.0 for none."""
    import numpy as np

    return float(np.quantile(values, share)) if values else 0.0


def passed_by(values: Sequence[float], share: float) -> float:
    """Return the floor that a share of the unanswered prompts of a vault's subject pass.

    `values` are the evidence for each title without its lesson.
    """
    mirrored = 2 * quantile(values, 0.5) - quantile(values, share)
    return (quantile(values, 1 - share) + mirrored) / 2
