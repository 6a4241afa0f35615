"""Copy built skills where an agent loads them, and take the copies out again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from vault_index import files, skill
from vault_index.learn.skills import build

if TYPE_CHECKING:
    from vault_index.vault import Vault

KEPT = "kept: it was changed by hand, or comes from elsewhere"
REMOVED = "removed"


def folder_for(project: Path | None) -> Path:
    """Return the folder of Claude Code's skills: a project's, else the user's."""
    return project / ".claude" / "skills" if project else skill.user_folder()


def copy(vault: Vault, top: Path) -> dict[str, str]:
    """Copy the vault's built skills into a folder; return the state of each: new, changed ...

    A copy that somebody changed stays, and so does another skill of that name. Raises WriteError.
    """
    copies = build.built_in(top)
    states: dict[str, str] = {}
    for tag, built in build.built_in(vault.root / build.FOLDER).items():
        place, before = top / built.folder.name, copies.get(tag)
        if before and before.files == built.files:
            states[str(place)] = build.UNCHANGED
        elif before.is_edited if before else os.path.lexists(place):
            states[str(place)] = KEPT
        else:
            with files.writing(place):
                place.mkdir(parents=True, exist_ok=True)
            for name, data in built.files.items():
                files.replace_file(place / name, data)
            states[str(place)] = build.CHANGED if before else build.NEW
    return states


def remove(top: Path) -> dict[str, str]:
    """Remove the copies of built skills from a folder; return the state of each. Raises WriteError."""
    states: dict[str, str] = {}
    for copied in build.built_in(top).values():
        states[str(copied.folder)] = KEPT if copied.is_edited else REMOVED
        if not copied.is_edited:
            with files.writing(copied.folder):
                for name in copied.files:
                    (copied.folder / name).unlink(missing_ok=True)
                files.remove_empty(copied.folder, top)
    return states
