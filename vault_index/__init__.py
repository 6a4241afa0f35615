"""The memory of a team that works with coding agents: lessons in git, the right one at the prompt.

    from vault_index import index, open_vault, search

    vault = open_vault(".")
    index.sync(vault)
    for hit in search.find(vault, "our build dies with heap out of memory", k=3):
        print(hit.percent, hit.title, hit.path)

The names below are public; nothing is loaded before it is used.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing takes 3 ms to load, and hooks load this

if TYPE_CHECKING:
    from typing import Any

    from vault_index.errors import VaultError
    from vault_index.lesson.parse import Lesson
    from vault_index.search.hit import Hit
    from vault_index.vault import Vault, open_vault

__all__ = ["Hit", "Lesson", "Vault", "VaultError", "open_vault"]

_HOMES = {
    "Hit": "vault_index.search.hit",
    "Lesson": "vault_index.lesson.parse",
    "Vault": "vault_index.vault",
    "VaultError": "vault_index.errors",
    "open_vault": "vault_index.vault",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
