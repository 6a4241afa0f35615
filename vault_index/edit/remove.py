"""Take a lesson out of the vault: its file, or its section of a file."""

from __future__ import annotations

from pathlib import Path

from vault_index import files
from vault_index.lesson import edits
from vault_index.retrieval import entries
from vault_index.retrieval.hit import WholeEntry
from vault_index.vault import Vault


def delete(vault: Vault, name: str, shown: WholeEntry | None = None) -> Path:
    """Delete a lesson and return the path of its file. git still has the committed text.

    `name` is its id, its path, or the end of either. With the last lesson of a file goes the file, and
    its folder if that is empty then. `shown` is the entry that a person agreed to delete. Raises
    VaultError for a name of no lesson, of several, or of another than `shown`; LessonError, WriteError.
    """
    entry = shown or entries.entry(vault, name)
    file = vault.root / entry.path
    slug = entry.id.partition("#")[2]
    before = entries.content(vault, entry, unchanged=True)
    remaining = edits.without(before, slug, entry.path)
    if remaining is not None:
        files.change_file(file, remaining, expected=before, within=vault.root)
    else:
        files.remove_file(file, expected=before, within=vault.root)
        files.remove_empty(file.parent, vault.lessons_dir)
    return file
