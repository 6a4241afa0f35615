"""The lessons that a session received: a file per session in the index folder."""

from __future__ import annotations

import os
import time
from pathlib import Path

from vault_index.recall.select import Injection
from vault_index.store import ownership
from vault_index.vault import Vault

SESSION_DAYS = 7  # days to remember which lessons a session received


def file_of(vault: Vault, session: str) -> Path:
    """Return the file that lists the lessons of a session."""
    name = "".join(char for char in session if char.isalnum() or char in "-_")[:80]
    return vault.index_dir / "sessions" / name


def given(vault: Vault, session: str) -> dict[str, None]:
    """Return the ids of the lessons that a session received, the latest last."""
    if not session:
        return {}
    try:
        lines = ownership.read_text(file_of(vault, session)).splitlines()
    except (OSError, UnicodeDecodeError):
        return {}
    return dict.fromkeys(reversed(dict.fromkeys(reversed(lines))))


def forget_given(vault: Vault, session: str) -> None:
    """Empty the record of what a session received: the agent has lost it."""
    if session:
        file_of(vault, session).unlink(missing_ok=True)


def remember(vault: Vault, session: str, injection: Injection) -> None:
    """Record what an injection holds, so that the session gets each of it once."""
    if not session:
        return
    file = file_of(vault, session)
    try:
        ownership.make_folder(file.parent)
        handle = ownership.open_file(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        with os.fdopen(handle, "a", encoding="utf-8") as lines:
            lines.writelines(f"{hit.lesson_id}\n" for hit in [*injection.hits, *injection.skills])
    except OSError:  # a read-only vault: a lesson may then come twice
        return


def forget_old(vault: Vault) -> None:
    """Remove the files of sessions that received nothing for `SESSION_DAYS`.

    Counted from the latest of them: a clock that is wrong now removes none.
    """
    folder = vault.index_dir / "sessions"
    there = list(folder.iterdir()) if ownership.is_folder(folder) else []
    written = {file: file.lstat().st_mtime for file in there if not ownership.is_folder(file)}
    oldest = min([time.time(), *sorted(written.values())[-1:]]) - SESSION_DAYS * 86_400
    for file, when in written.items():
        if when < oldest:
            file.unlink(missing_ok=True)
