"""Confirm lessons: a person read them again, they hold, and agents may have them."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from vault_index import check, files
from vault_index.lesson import edit_frontmatter
from vault_index.recall.outcome.stale import CONFIRMED
from vault_index.search import entries
from vault_index.store import released

if TYPE_CHECKING:
    from vault_index.vault import Vault


class Confirmed(NamedTuple):
    """A file that was confirmed: whether it changed, and whether agents get from now on what it holds."""

    file: Path
    is_changed: bool
    is_released: bool


def write(vault: Vault, entry: entries.Entry, day: date) -> Confirmed:
    """Write the day into the frontmatter of a lesson's file, and release its text if it is held back.

    A section's file is confirmed as a whole. The rest of the file stays, to the byte. Raises
    LessonError for a file that cannot be edited, VaultError if it is another lesson by now, WriteError.
    """
    file = vault.root / entry["path"]
    before = entries.content(vault, entry)
    data = edit_frontmatter.set_keys(before, {CONFIRMED: day}, entry["path"])
    below = entry["path"].partition("/")[2]
    if data != before:
        check.refuse_errors(below, data, before)
        files.change_file(file, data, expected=before, within=vault.root)
    until = check.withheld(below, data, vault.config.home).until
    if until:
        released.add(vault.config.home, until)
    return Confirmed(file, data != before, bool(until))
