"""Files -> rows: the difference, rows, vectors, tables; and what follows from lessons.

The names below are loaded when they are used: a command that lists files needs none of the rest.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vault_index.index.reconcile import sync, tidy
    from vault_index.store.manifest import Problem
    from vault_index.store.sync import Stats

__all__ = ["Problem", "Stats", "sync", "tidy"]

_HOMES = {
    "Problem": "store.manifest",
    "Stats": "store.sync",
    "sync": "index.reconcile",
    "tidy": "index.reconcile",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"vault_index.{_HOMES[name]}"), name)
