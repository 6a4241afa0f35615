"""Take a lesson out of the vault: its file, or its section of a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vault_index import files
from vault_index.lesson import edits
from vault_index.search import entries

if TYPE_CHECKING:
    from vault_index.vault import Vault


def lesson(vault: Vault, name: str, shown: entries.Entry | None = None) -> Path:
    """Delete a lesson and return the path of its file. git still has what was committed.

    `name` is its id, its path, or the end of either. A section goes out of its file, and so does
    the text before the first one; with the last lesson goes the file, and a folder that is empty
    then. The index knows at its next sync. `shown` is the entry that somebody saw who agreed to it.

    Raises VaultError for a name of no lesson, of several, or of another lesson than before;
    LessonError, WriteError.
    """
    entry = shown or entries.entry(vault, name)
    file = vault.root / entry["path"]
    slug = entry["id"].rpartition("#")[2] if "#" in entry["id"] else ""
    before = entries.content(vault, entry, unchanged=True)
    left = edits.without(before, slug, entry["path"])
    if left is not None:
        files.change_file(file, left, expected=before, within=vault.root)
    else:
        files.remove_file(file, expected=before, within=vault.root)
        files.remove_empty(file.parent, vault.lessons_dir)
    return file
