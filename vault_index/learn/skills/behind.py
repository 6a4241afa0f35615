"""Which skills of a vault were built here, and whether they still say what their lessons say."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from vault_index.check.finding import WARNING, Finding
from vault_index.errors import VaultError
from vault_index.files import read_if_any
from vault_index.learn.skills import cluster, render
from vault_index.learn.skills.cluster import PREFIX, Cluster
from vault_index.learn.skills.render import REFERENCE, Lineage
from vault_index.skill import FILE

if TYPE_CHECKING:
    from vault_index.vault import Vault

FOLDER = "skills"  # of a vault
BEHIND, EDITED = "skill-behind", "skill-edited"  # rules of findings
SHOWN = 3  # ids of lessons in a message


@dataclass(frozen=True)
class Existing:
    """The folder of a skill that was built, and its files as they are; None for one that is gone."""

    folder: Path
    lineage: Lineage
    skill: bytes
    reference: bytes | None

    @cached_property
    def is_edited(self) -> bool:
        """Whether a file is not as it was built; one that was deleted loses nothing."""
        same = self.reference is None or render.digest(self.reference) == self.lineage.reference
        return not (self.lineage.is_as_built and same)

    @property
    def is_whole(self) -> bool:
        """Whether both files are there, as they were built."""
        return self.reference is not None and not self.is_edited


def existing(vault: Vault) -> dict[str, Existing]:
    """Return the skills that were built, by tag. Links are not followed."""
    folder = vault.root / FOLDER
    found: dict[str, Existing] = {}
    if folder.is_symlink():
        return found
    try:
        with os.scandir(folder) as entries:
            names = sorted(
                entry.name
                for entry in entries
                if entry.name.startswith(PREFIX) and entry.is_dir(follow_symlinks=False)
            )
    except OSError:
        return found
    for name in names:
        try:
            skill = read_if_any(folder / name / FILE)
            reference = read_if_any(folder / name / REFERENCE)
        except VaultError:  # a link or a pipe: not built here
            continue
        read = render.read_lineage(skill, f"{FOLDER}/{name}/{FILE}") if skill else None
        if skill and read and PREFIX + read.tag == name:
            found[read.tag] = Existing(folder / name, read, skill, reference)
    return found


def findings(vault: Vault) -> Iterator[Finding]:
    """Find the skills that are behind their lessons, and those that somebody edited.

    Raises IndexStateError without an index.
    """
    built = existing(vault)
    if not built:
        return
    clusters = {each.tag: each for each in cluster.of(vault, built)}
    known: dict[str, str] = {}
    for tag, one in built.items():
        now = clusters.get(tag)
        why = behind(one.lineage, now)
        if why and now:  # what it must not repeat may be all that is new
            now = cluster.safe(now, known)[0]
            why = behind(one.lineage, now)
        path = f"{FOLDER}/{one.folder.name}/{FILE}"
        edited = "was changed by hand, so `lessons skills build` keeps it as it is"
        if why:
            also = f"; it {edited}" if one.is_edited else f": run `lessons skills build {tag}`"
            also = "" if now is None else also
            yield Finding(path, 1, BEHIND, why + also, WARNING)
        elif one.is_edited:
            yield Finding(path, 1, EDITED, edited, WARNING)


def behind(built: Lineage, now: Cluster | None) -> str:
    """Return how a skill is behind its lessons; "" if it is not."""
    if now is None or not now.patterns:
        return "its lessons are gone, or are no patterns with this tag any more: remove its folder"
    digests = {each.id: each.digest for each in now.patterns}
    changed = [id for id in digests if id in built.lessons and built.lessons[id] != digests[id]]
    groups = {
        "changed": changed,
        "new": sorted(digests.keys() - built.lessons.keys()),
        "gone": sorted(built.lessons.keys() - digests.keys()),
    }
    said = [f"{len(ids)} {word} ({_some(ids)})" for word, ids in groups.items() if ids]
    return f"it is behind its lessons: {', '.join(said)}" if said else ""


def _some(ids: list[str]) -> str:
    return ", ".join(ids[:SHOWN]) + (", ..." if len(ids) > SHOWN else "")
