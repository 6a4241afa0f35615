"""Confirm lessons: a person read them again, they hold, and agents may have them."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

from vault_index import check
from vault_index.check import Finding, harmless
from vault_index.edit.update import ONLY_PERSONS, put
from vault_index.errors import VaultError
from vault_index.lesson import edits
from vault_index.lesson.parse import parse_file
from vault_index.recall import anchors
from vault_index.recall.outdated import CONFIRMED
from vault_index.retrieval import entries
from vault_index.retrieval.hit import WholeEntry
from vault_index.store import released
from vault_index.vault import Vault


class ConfirmedFile(NamedTuple):
    """A file that was confirmed: whether it changed, and whether agents get its lessons from now on.

    `harmless` is what looked like a secret and is called harmless from now on.
    """

    file: Path
    is_changed: bool
    is_released: bool
    harmless: tuple[Finding, ...] = ()


def confirm(vault: Vault, entry: WholeEntry, day: date, by: str = "person") -> ConfirmedFile:
    """Write the day into the frontmatter of a lesson's file, and release its text if it is held back.

    A section's file is confirmed as a whole, and what looks like a secret in it is noted as harmless.
    The rest of the file stays, to the byte. Raises LessonError for a file that cannot be edited,
    VaultError if it is another lesson by now, or for a secret that an agent calls harmless, WriteError.
    """
    before = entries.content(vault, entry)
    found = harmless.unsaid(before, vault.config.home)
    if found and by == "agent":
        raise VaultError(
            f"{entry.path}:{found[0].line}: {ONLY_PERSONS}", "ask a person to confirm it"
        )
    harmless.say((one for each in found for one in each.fingerprints), vault.config.home)
    keys: dict[str, Any] = {CONFIRMED: day}
    if regions := anchors.read(parse_file(before, entry.path)[0].anchors):
        keys[anchors.KEY] = anchors.hashed(vault, regions)
    data = harmless.with_line(edits.set_keys(before, keys, entry.path), entry.path)
    file = put(vault, entry.path, data, before)
    until = check.withheld(entry.path.partition("/")[2], data, vault.config.home).until
    if until:
        released.add(vault.config.home, until)
    return ConfirmedFile(file, data != before, bool(until), tuple(found))
