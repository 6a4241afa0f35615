"""The clones of vaults above, kept in the user's folder: fetched by `lessons sync`, never written to.

A tag or a commit is pinned: a tag that moved is not followed. A branch, or no name at all, is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from vault_index import files, git
from vault_index.errors import GitError, IndexStateError, VaultError
from vault_index.search import above
from vault_index.vault import open_vault

if TYPE_CHECKING:
    from vault_index.search.above import Above
    from vault_index.vault import Vault

_HEADS, _TAGS = "refs/remotes/origin/", "refs/tags/"
_HASH = re.compile(r"[0-9a-f]{7,40}")


def update(
    vault: Vault, index: Callable[[Vault], object], note: Callable[[str], None]
) -> list[dict[str, Any]]:
    """Fetch the clones of the vaults above and index all of those; return what `listed` does.

    A vault that cannot be fetched stays as it is, and a note says why.
    """
    for each in above.of(vault):
        try:
            if each.url:
                _fetch(each)
            if each.is_there:
                index(open_vault(each.root))
        except VaultError as error:
            note(f"warning: {each.name}: {error.message}")
    return listed(vault)


def _fetch(each: Above) -> None:
    """Bring a clone to what its entry names. Raises GitError, WriteError, VaultError."""
    root = each.root
    with files.writing(root):
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not (root / ".git").exists():
        git.command(root, "init", "--quiet")
    there = git.head(root)
    refs = [f"+refs/heads/*:{_HEADS}*", f"+{_TAGS}*:{_TAGS}*"] if each.ref else ["HEAD"]
    pinned = git.resolve(root, f"{_TAGS}{each.ref}") if each.ref else ""
    git.command(root, "fetch", "--quiet", "--no-tags", "--", each.url, *refs)
    commit = _commit(each)
    if pinned and commit != pinned:
        git.command(root, "update-ref", f"{_TAGS}{each.ref}", pinned)
        raise VaultError(f"the tag {each.ref} moved to {commit[:7]}: kept {pinned[:7]}")
    if commit != there:
        git.command(root, "checkout", "--quiet", "--force", "--detach", commit)


def _commit(each: Above) -> str:
    if not each.ref:
        return git.resolve(each.root, "FETCH_HEAD")
    names = [f"{_TAGS}{each.ref}", each.ref] if _HASH.fullmatch(each.ref) else [_TAGS + each.ref]
    for name in [*names, _HEADS + each.ref]:
        if commit := git.resolve(each.root, name):
            return commit
    raise GitError(f"{each.url} has no {each.ref}", "correct the entry in `vaults.above`")


def listed(vault: Vault) -> list[dict[str, Any]]:
    """Return the vaults that a prompt searches, nearest first, then what the vault proposes.

    `name`, `entry`, `state` in words, `lessons` and `bytes` (None where there is no index).
    """
    own = {"name": vault.root.name, "entry": str(vault.root), **_state(vault)}
    rows = [own]
    for each in above.of(vault):
        row: dict[str, Any] = {"name": each.name, "entry": each.entry}
        if not each.is_there:
            lacking = "not fetched: run `lessons sync`" if each.url else "no vault there"
            rows.append(row | {"state": lacking, "lessons": None, "bytes": None})
            continue
        try:
            row |= _state(open_vault(each.root))
        except VaultError as error:
            row |= {"state": error.message, "lessons": None, "bytes": None}
        if each.url:
            row["state"] += f", at {(git.head(each.root) or '')[:7]}"
        rows.append(row)
    known = {row["entry"] for row in rows}
    for entry in vault.config.proposed_above:
        if entry not in known:
            lacking = "proposed: run `lessons vaults accept`"
            rows.append(
                {"name": "", "entry": entry, "state": lacking, "lessons": None, "bytes": None}
            )
    return rows


def _state(vault: Vault) -> dict[str, Any]:
    """Return the state of a vault's index, its lessons, and the bytes of lessons and index."""
    try:
        opened = vault.open_index()
    except IndexStateError:
        return {"state": "no index: run `lessons sync`", "lessons": None, "bytes": None}
    folders = (vault.lessons_dir, opened.store.index)
    size = sum(
        file.lstat().st_size
        for folder in folders
        for file in folder.rglob("*")
        if file.is_file() and not file.is_symlink()
    )
    return {"state": "ready", "lessons": opened.lessons, "bytes": size}
