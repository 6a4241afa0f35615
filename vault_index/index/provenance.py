"""Who wrote each file and when, as git says: what differs from what the manifest says.

The manifest's `head` is the commit whose authors and dates its entries have. Only commits after it
are asked about where they are a plain line of changes. After a merge or a rename, or where a file is
new to the manifest, all of the history is read: a side branch that was merged may have older and
newer commits of a file than those that the manifest knows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from vault_index import git

if TYPE_CHECKING:
    from vault_index.index.diff import Diff
    from vault_index.store.manifest import FileEntry, Manifest
    from vault_index.vault import Vault


@dataclass(frozen=True, slots=True)
class Answer:
    """What git says otherwise than a manifest, by path below the vault's folder.

    `head` is what the manifest says after that: "" where git is still to be asked about all files.
    """

    head: str
    changed: Mapping[str, git.Provenance] = field(default_factory=dict)


def ask(vault: Vault, manifest: Manifest, diff: Diff) -> Answer:
    """Ask git about the commits up to the one that was checked out when the files were listed.

    If git is not to be asked, authors of new files are filled in by the next sync that asks.
    """
    head = diff.head
    if head is None:
        return Answer("" if diff.has_new else manifest.head)
    if not diff.has_new and head == manifest.head:  # a new file may be an old one that is back
        return Answer(head)
    return _of_newer_commits(vault, manifest, diff, head) or _of_all(vault, manifest, head)


def _of_newer_commits(vault: Vault, manifest: Manifest, diff: Diff, head: str) -> Answer | None:
    """Ask about the commits since the manifest's; None where all of them have to be read."""
    since = "" if diff.has_new else manifest.head
    newer = git.history(vault.lessons_dir, head, since) if since and head else None
    if newer is None or not all(path in manifest.files for path in newer):
        return None
    firsts = {path: manifest.files[path].first for path in newer}
    if not all(firsts.values()):
        return None
    return Answer(head, {path: replace(newer[path], first=firsts[path]) for path in newer})


def _of_all(vault: Vault, manifest: Manifest, head: str) -> Answer:
    """Ask about all commits up to `head`; "" before the first commit."""
    history = (git.history(vault.lessons_dir, head) if head else None) or {}
    if head and not history and git.tree(vault.lessons_dir, head):
        return Answer("")  # there are commits of lessons, and git could not read them just now
    now = dict.fromkeys(manifest.files, git.Provenance("", "", "")) | history
    return Answer(head, {path: new for path, new in now.items() if _differs(manifest, path, new)})


def of_entry(entry: FileEntry) -> git.Provenance:
    """Return what a manifest's entry says."""
    return git.Provenance(entry.author, entry.first, entry.last)


def _differs(manifest: Manifest, path: str, now: git.Provenance) -> bool:
    entry = manifest.files.get(path)
    return entry is None or of_entry(entry) != now
