"""All that is asked of git, in parts: how it is run, what is checked out, its history, differences.

A folder that is no repository, or one git refuses to read, is an ordinary case: there is then
nothing to know.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the names that `__getattr__` finds
    from vault_index.git.changes import *  # noqa: F403
    from vault_index.git.checkout import *  # noqa: F403
    from vault_index.git.dotgit import *  # noqa: F403
    from vault_index.git.history import *  # noqa: F403
    from vault_index.git.run import *  # noqa: F403

# A part is loaded when something of it is asked for: all of them take half a bare Python's start.
_PARTS = ("dotgit", "run", "checkout", "history", "changes")


def __getattr__(name: str) -> Any:
    for part in () if name.startswith("_") else _PARTS:
        module = importlib.import_module(f"{__name__}.{part}")
        if name in vars(module):
            globals()[name] = vars(module)[name]
            return globals()[name]
    raise AttributeError(name)
