"""The clones of vaults above, kept in the user's folder: fetched by `lessons sync`, never written to.

A tag or a commit is pinned: a tag that moved is not followed. A branch, or no name at all, is.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vault_index import files, git
from vault_index.errors import GitError, IndexStateError, VaultError
from vault_index.files import private
from vault_index.search import above
from vault_index.vault import FOLDER, open_vault

if TYPE_CHECKING:
    from vault_index.search.above import Above
    from vault_index.vault import Vault

_HEADS, _PINNED, _TAGS = "refs/remotes/origin/", "refs/tags/", "refs/fetched/"
_HASH = re.compile(r"[0-9a-f]{7,40}")
_NO_STATE: dict[str, Any] = {"state": "", "lessons": None, "bytes": None}


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
    with private.locked(root.with_name(f"{root.name}.lock")):
        folder = root / ".git"
        if not _git(root, "rev-parse", "--git-dir", check=False):  # missing, or broken
            shutil.rmtree(folder, ignore_errors=True)
            _git(root, "init", "--quiet")
        with files.writing(folder):  # what a killed git left
            for lock in [*folder.glob("*.lock"), *(folder / "refs").rglob("*.lock")]:
                lock.unlink(missing_ok=True)
        there = git.head(root)
        refs = [f"+refs/heads/*:{_HEADS}*", f"+refs/tags/*:{_TAGS}*"] if each.ref else ["HEAD"]
        _git(root, "fetch", "--quiet", "--no-tags", "--", each.url, *refs)
        commit, moved = _commit(each)
        if commit != there:
            _git(root, "checkout", "--quiet", "--force", "--detach", commit)
        if there is None:  # what an earlier clone left
            _git(root, "clean", "-qfdx", "--", FOLDER)
    if moved:
        raise VaultError(f"the tag {each.ref} moved to {moved[:7]}: kept {commit[:7]}")


def _git(root: Path, *arguments: str, check: bool = True) -> str:
    """Run git in the clone's own `.git`, never in a repository around it."""
    return git.command(
        root, f"--git-dir={root / '.git'}", f"--work-tree={root}", *arguments, check=check
    )


def _commit(each: Above) -> tuple[str, str]:
    """Return the commit that an entry names, and where its tag moved since it was pinned, or ""."""
    root, ref = each.root, each.ref
    if not ref:
        return git.resolve(root, "FETCH_HEAD"), ""
    lacking = GitError(f"{each.url} has no {ref}", "correct the entry in `vaults.above`")
    if _HASH.fullmatch(ref):  # a branch or tag of that name is another thing
        objects = _git(root, "rev-parse", f"--disambiguate={ref}").split()
        commits = [name for name in objects if git.resolve(root, name) == name]
        if len(commits) == 1:
            return commits[0], ""
        if not ref.isdecimal():  # a date is a good name of a tag
            raise lacking
    pinned, tag = (git.resolve(root, f"{prefix}{ref}") for prefix in (_PINNED, _TAGS))
    if tag and not pinned:
        _git(root, "update-ref", f"{_PINNED}{ref}", tag)
    commit = pinned or tag or git.resolve(root, f"{_HEADS}{ref}")
    if not commit:
        raise lacking
    return commit, tag if tag != commit else ""


def listed(vault: Vault) -> list[dict[str, Any]]:
    """Return the vaults that a prompt searches, nearest first, then what the vault proposes.

    `name`, `entry`, `state` in words, `lessons` and `bytes` (None where there is no index).
    """
    own = {"name": vault.root.name, "entry": str(vault.root), **_state(vault)}
    rows = [own]
    for each in above.of(vault):
        lacking = "not fetched: run `lessons sync`" if each.url else "no vault there"
        state = _NO_STATE | {"state": lacking}
        if each.is_there:
            try:
                state = _state(open_vault(each.root))
            except VaultError as error:
                state["state"] = error.message
            if each.url:
                state["state"] += f", at {(git.head(each.root) or '')[:7]}"
        rows.append({"name": each.name, "entry": each.entry, **state})
    listed = {row["entry"] for row in rows}
    proposed = _NO_STATE | {"state": "proposed: run `lessons vaults accept`"}
    new = [entry for entry in above.proposals(vault) if entry not in listed]
    return rows + [{"name": "", "entry": entry, **proposed} for entry in new]


def _state(vault: Vault) -> dict[str, Any]:
    """Return the state of a vault's index, its lessons, and the bytes of lessons and index."""
    try:
        opened = vault.open_index()
    except IndexStateError:
        return _NO_STATE | {"state": "no index: run `lessons sync`"}
    folders = (vault.lessons_dir, opened.store.index)
    size = sum(
        file.lstat().st_size
        for folder in folders
        for file in folder.rglob("*")
        if file.is_file() and not file.is_symlink()
    )
    return {"state": "ready", "lessons": opened.lessons, "bytes": size}
