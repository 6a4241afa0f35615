"""The memory of a team that works with coding agents: lessons in git, the right one at the prompt.

    import vault_index

    vault = vault_index.open_vault(".")
    for hit in vault_index.search(vault, "our build dies with heap out of memory", k=3):
        print(hit.percent, hit.title, hit.path)

The names below are public; nothing is loaded before it is used.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing takes 3 ms to load, and hooks load this

if TYPE_CHECKING:
    from typing import Any

    from vault_index.client.local import add, search
    from vault_index.errors import VaultError
    from vault_index.lesson.parse import Lesson
    from vault_index.retrieval.hit import Hit
    from vault_index.vault import Vault, open_vault

    __version__: str

__all__ = ["Hit", "Lesson", "Vault", "VaultError", "__version__", "add", "open_vault", "search"]

_HOMES = {
    "Hit": "vault_index.retrieval.hit",
    "Lesson": "vault_index.lesson.parse",
    "Vault": "vault_index.vault",
    "VaultError": "vault_index.errors",
    "add": "vault_index.client.local",
    "open_vault": "vault_index.vault",
    "search": "vault_index.client.local",
}


def __getattr__(name: str) -> Any:
    import importlib

    if name == "__version__":
        return importlib.import_module("importlib.metadata").version("lessons-vault")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return list(__all__)
