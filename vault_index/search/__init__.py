"""A query -> hits; entries, documents, the floor, near-duplicates, evaluation.

The names below load when they are used: a command that lists files needs none of the rest.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vault_index.search.hit import Hit
    from vault_index.search.query import Query, Results, find

__all__ = ["Hit", "Query", "Results", "find"]

_HOMES = {"Hit": "hit", "Query": "query", "Results": "query", "find": "query"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


class _Search(ModuleType):
    """This package as a function, since `vault_index.search(vault, "...")` is what a script types."""

    def __call__(self, *args: Any, **options: Any) -> list[Hit]:
        """Search as `client.here.search` does, which is above this room and so loads by name."""
        scripts = importlib.import_module("vault_index.client.here")
        hits: list[Hit] = scripts.search(*args, **options)
        return hits


sys.modules[__name__].__class__ = _Search
