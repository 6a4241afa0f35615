"""Check the lesson files whose rows were written before that, for what agents must not get.

    files that are not checked yet -> findings, without a lock -> rows and manifest, in a moment of it

To check many files takes longer than to make them into rows, so a first index and a pull write the rows
as `UNCHECKED`. People find them at once. An agent gets none of them unless it is checked at that moment:
see `retrieval.unchecked`. A kill at any moment loses nothing: what was found is kept in the user's cache,
and the files are marked in the manifest until their rows say what was found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from vault_index.index import diff
from vault_index.index.derived import FOLDED_ROWS, TEXT_INDEX
from vault_index.store import filters, manifest, ownership
from vault_index.store.completing import FILES
from vault_index.store.lance import Table
from vault_index.vault import shown

if TYPE_CHECKING:
    from pathlib import Path

    from vault_index.check import Withheld
    from vault_index.store.manifest import FileEntry
    from vault_index.store.sync import Progress
    from vault_index.vault import Vault


def complete(vault: Vault, progress: Progress) -> bool:
    """Check the files that are not checked yet, and write it; return whether rows were written.

    `progress` gets the files checked, and all. Raises WriteError, IndexStateError.
    """
    tried: set[tuple[str, str]] = set()  # files with their hashes
    wrote = False
    while index := manifest.current(vault.index_dir):
        known = manifest.load(index)
        hashes = {path: known.files[path].hash for path in manifest.unchecked(known)}
        due = {path: hash for path, hash in hashes.items() if (path, hash) not in tried}
        if not due:
            break
        some = dict(islice(due.items(), FILES))
        tried.update(some.items())
        found = _check(vault, some, progress)
        wrote |= bool(found) and _write(vault, index, some, found)
    return wrote


def _check(vault: Vault, hashes: Mapping[str, str], progress: Progress) -> dict[str, Withheld]:
    """Return the reasons that keep files from agents, of files that are as they were indexed."""
    found: dict[str, Withheld] = {}
    with diff.withholding(vault) as withheld:
        for done, (path, hashed) in enumerate(hashes.items(), start=1):
            why = diff.withheld_as_indexed(vault, withheld, path, hashed)
            if why is not None:
                found[path] = why
            progress(done, len(hashes))
    return found


def _write(
    vault: Vault, index: Path, hashes: Mapping[str, str], found: Mapping[str, Withheld]
) -> bool:
    """Write the findings into the rows of files that are as they were."""
    with ownership.held(vault.index_dir, wait=True):
        if index != manifest.current(vault.index_dir):
            return False
        known = manifest.load(index)
        same = [
            path for path in manifest.unchecked(known) if known.files[path].hash == hashes.get(path)
        ]
        why = {shown(path): found[path].why for path in same if path in found}
        table = Table(index, known.dimension)
        written = table.set_withheld(filters.some_of("path", why), why)
        entries = {path: _entry(known.files[path], found[path]) for path in same if path in found}
        derived = dict(known.derived)
        if written >= FOLDED_ROWS:
            table.fold()
        elif written:
            derived.pop(TEXT_INDEX, None)
        after = manifest.with_files(replace(known, derived=derived), entries)
        manifest.save(index, after)
        return bool(entries)


def _entry(before: FileEntry, found: Withheld) -> FileEntry:
    return replace(before, withheld=found.why, held=found.until)
