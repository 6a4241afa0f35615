"""Take a lesson out of the vault: its file, or its section of a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vault_index import body_edit, files, get

if TYPE_CHECKING:
    from vault_index.vault import Vault


def lesson(vault: Vault, name: str, shown: get.Entry | None = None) -> Path:
    """Delete a lesson and give the path of the file it was in. git still has what was committed.

    `name` is its id, its path, or the end of either. A section goes out of its file, and so does
    the text before the first one; with the last lesson goes the file, and a folder that is empty
    then. The index knows at its next sync. `shown` is what somebody saw who agreed to it.

    Raises VaultError for a name that is of none or of several, or of another lesson than before;
    LessonError, WriteError.
    """
    found = shown or get.entry(vault, name)
    file = vault.root / found["path"]
    slug = found["id"].rpartition("#")[2] if "#" in found["id"] else ""
    before = get.content(vault, found, unchanged=True)
    left = body_edit.without(before, slug, found["path"])
    if left is not None:
        files.change_file(file, left, expected=before, within=vault.root)
    else:
        files.remove_file(file, expected=before, within=vault.root)
        files.remove_empty(file.parent, vault.folder)
    return file
