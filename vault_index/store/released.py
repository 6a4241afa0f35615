"""Texts that this user has read and let agents have, though `check` holds them back.

They are in the database of this machine, by the hash of the text: no file of a vault can release
itself, and a text that changes is held back again. `lessons check --confirm` adds to them.
"""

from __future__ import annotations

import re
from pathlib import Path

from vault_index import state
from vault_index.lesson import file

# `lessons check --confirm` writes it, and so do others: it changes nothing of what was read
_CONFIRMED = re.compile(rb"(?m)^confirmed: *['\"]?\d{4}-\d\d-\d\d['\"]? *(?:\r?\n|\r|\Z)")


def name_of(data: bytes) -> str:
    """Return the hash by which a text is released: of the file without the day of `confirmed`."""
    return file.hash_of_file(_CONFIRMED.sub(b"", data))


def has(home: Path, name: str) -> bool:
    """Whether the user has released the text of this hash."""
    if not name:
        return False
    with state.reading(home) as db:
        return bool(db.execute("SELECT 1 FROM released WHERE hash = ?", [name]).fetchone())


def add(home: Path, name: str) -> None:
    """Release the text of this hash for this user. Raises WriteError."""
    with state.writing(home) as db:
        db.execute("INSERT OR IGNORE INTO released VALUES (?)", [name])
