"""A query -> hits; entries, documents, the floor, near-duplicates, evaluation."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any


class _Search(ModuleType):
    """This package as a function, since `vault_index.search(vault, "...")` is what a script types."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Search as `client.local.search` does, which is above this room and so loads by name."""
        return importlib.import_module("vault_index.client.local").search(*args, **options)


sys.modules[__name__].__class__ = _Search
