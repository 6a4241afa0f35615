"""Confirm lessons: a person read them again, and they hold."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from vault_index import check, files
from vault_index.lesson import edit_frontmatter
from vault_index.recall.outcome.stale import CONFIRMED
from vault_index.search import entries

if TYPE_CHECKING:
    from vault_index.vault import Vault


def write(vault: Vault, entry: entries.Entry, day: date) -> tuple[Path, bool]:
    """Write the day into the frontmatter of a lesson's file; return the file, and whether it changed.

    A section's file is confirmed as a whole. The rest of the file stays, to the byte. Raises
    LessonError for a file that cannot be edited, VaultError if it is another lesson by now, WriteError.
    """
    file = vault.root / entry["path"]
    before = entries.content(vault, entry)
    data = edit_frontmatter.set_keys(before, {CONFIRMED: day}, entry["path"])
    if data == before:
        return file, False
    check.refuse_errors(entry["path"].partition("/")[2], data, before)
    files.change_file(file, data, expected=before, within=vault.root)
    return file, True
