"""Questions that plain files answer where that is certain, and git, which takes longer, elsewhere."""

from __future__ import annotations

from pathlib import Path

from vault_index.git import plain


def is_tracked(folder: Path, name: str) -> bool:
    """Whether git has something in its index that is at, or below, a name in a folder.

    In any case of its letters: on some disks that is the same folder.
    """
    top = plain.top_of(folder)
    if top is None or plain.tracks_nothing_named(top, name):
        return False
    from vault_index.git import run

    return run.has_in_index(folder, name)


def head(folder: Path) -> str | None:
    """Return the commit that is checked out (40 hexadecimal digits); None without one."""
    top = plain.top_of(folder)
    commit = plain.head_of(top) if top else None
    if commit:
        return commit
    from vault_index.git import run

    with run.opened(folder) as repo:
        return run.ask(repo, "rev-parse", "--verify", "-q", "HEAD") or None if repo else None
