"""Texts that this user has read and let agents have, though `check` holds them back.

They are in the user's own folder, an empty file each, named by the hash of the text: no file of a
vault can release itself, and a text that changes is held back again. `lessons confirm` adds to them.
"""

from __future__ import annotations

import re
from pathlib import Path

from vault_index import files
from vault_index.files import private
from vault_index.lesson import file

_FOLDER = "released"
# `lessons confirm` writes it, and so do others: it changes nothing of what was read
_CONFIRMED = re.compile(rb"(?m)^confirmed: *['\"]?\d{4}-\d\d-\d\d['\"]? *(?:\r?\n|\r|\Z)")


def name_of(data: bytes) -> str:
    """Return the hash by which a text is released: that of the file without the day of `confirmed`."""
    return file.hash_of_file(_CONFIRMED.sub(b"", data))


def has(home: Path, name: str) -> bool:
    """Whether the user has released the text of this hash."""
    return bool(name) and (home / _FOLDER / name).is_file()


def add(home: Path, name: str) -> None:
    """Release the text of this hash for this user. Raises WriteError."""
    private.make_folder(home / _FOLDER)
    with files.writing(home / _FOLDER):
        files.replace_file(home / _FOLDER / name, b"")
