"""A vault with a lesson that only some authors are trusted with, and what hooks inject of it."""

from __future__ import annotations

from pathlib import Path

from tests.support.files import MakeVault, commit, lesson_text, write
from vault_index.index import reconcile
from vault_index.recall import select
from vault_index.vault import Vault, open_vault

HEAP = lesson_text(
    "Raise the heap", "When the frontend build dies with heap out of memory, raise it."
)
PROMPT = "our frontend build dies with heap out of memory"


def vault_of_trust(make_vault: MakeVault, home: Path) -> Vault:
    """Make a committed and indexed vault of nine lessons, one of them `HEAP`."""
    files = {f"other/{n}.md": lesson_text(f"T{n}", f"Of something else, {n}.") for n in range(8)}
    trusting(home, "")
    vault = make_vault({"heap.md": HEAP} | files)
    commit(vault.root)
    reconcile.sync(vault)
    return vault


def injected(vault: Vault) -> list[str]:
    """Return the ids that a hook injects for `PROMPT`."""
    again = open_vault(vault.root)
    reconcile.sync(again)
    return [hit.lesson_id for hit in select.for_prompt(again, PROMPT).hits]


def trusting(home: Path, settings: str) -> None:
    """Write the user's settings."""
    write(home / "config.toml", f'embedder = "none"\nfloor = 0.05\n{settings}\n')
