"""Copy built skills where an agent loads them, with their lineage, and take the copies out again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from vault_index import files
from vault_index.learn.skills import build
from vault_index.learn.skills.render import REFERENCE
from vault_index.skill import FILE

if TYPE_CHECKING:
    from vault_index.vault import Vault

KEPT = "kept: it was changed by hand, or comes from elsewhere"
REMOVED = "removed"


def folder_for(project: Path | None) -> Path:
    """Return the folder of Claude Code's skills: a project's, else the user's."""
    if project is not None:
        return project / ".claude" / "skills"
    own = os.environ.get("CLAUDE_CONFIG_DIR")
    return (Path(own) if own else Path.home() / ".claude") / "skills"


def copy(vault: Vault, top: Path) -> dict[str, str]:
    """Copy the vault's built skills into a folder; return the state of each: new, changed ...

    A copy that somebody changed stays, and so does another skill of that name. Raises WriteError.
    """
    there = build.built_in(top)
    states: dict[str, str] = {}
    for tag, skill in build.existing(vault).items():
        place, before = top / skill.folder.name, there.get(tag)
        wanted = {REFERENCE: skill.reference or b"", FILE: skill.skill}
        if before and (before.skill, before.reference) == (wanted[FILE], wanted[REFERENCE]):
            states[str(place)] = build.UNCHANGED
        elif (before and before.is_edited) or (before is None and os.path.lexists(place)):
            states[str(place)] = KEPT
        else:
            with files.writing(place):
                place.mkdir(parents=True, exist_ok=True)
            for name, data in wanted.items():
                files.replace_file(place / name, data)
            states[str(place)] = build.CHANGED if before else build.NEW
    return states


def remove(top: Path) -> dict[str, str]:
    """Remove the copies of built skills from a folder; return the state of each. Raises WriteError."""
    states: dict[str, str] = {}
    for skill in build.built_in(top).values():
        states[str(skill.folder)] = KEPT if skill.is_edited else REMOVED
        if not skill.is_edited:
            with files.writing(skill.folder):
                for name in (FILE, REFERENCE):
                    (skill.folder / name).unlink(missing_ok=True)
                files.remove_empty(skill.folder, top)
    return states
