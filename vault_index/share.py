"""Fetch, rebase, push: what `lessons sync` does, without ever leaving a rebase half done.

Local commits are rebased in a worktree of their own, beside the one people work in. Only when all of
them applied is the branch moved, in one step that keeps what is not committed or refuses to.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from vault_index import git
from vault_index.check import secrets
from vault_index.errors import GitError, VaultError
from vault_index.lesson import decode

if TYPE_CHECKING:
    from vault_index.vault import Vault

TRIES = 4  # somebody else may push between our fetch and our push
_NO_HOOKS = ("-c", "core.hooksPath=/dev/null")  # in the worktree aside there is nothing to index


@dataclass(slots=True)
class Synced:
    """What a sync did, in commits and files."""

    branch: str
    remote: str
    fetched: int = 0
    rebased: int = 0
    pushed: int = 0
    uncommitted: int = 0


def sync(vault: Vault) -> Synced:
    """Bring this branch and the one it follows together; nothing is forced, nothing is merged twice.

    Files that are not committed stay as they are. Raises GitError, and VaultError where the
    user has to do something first.
    """
    top = git.top(vault.root)
    branch = _branch(top)
    remote, there = _followed(top, branch)
    upstream = f"refs/remotes/{remote}/{there}"
    state = git.worktree(vault.folder)
    done = Synced(branch, f"{remote}/{there}", uncommitted=len(state.uncommitted) if state else 0)
    for _ in range(TRIES):
        git.command(top, "fetch", "--quiet", remote)
        if git.resolve(top, upstream):
            done.fetched += git.count(top, f"HEAD..{upstream}")
            done.rebased += _take_in(top, branch, upstream)
        _refuse_secrets(vault, upstream if git.resolve(top, upstream) else "")
        outgoing = f"{upstream}..HEAD" if git.resolve(top, upstream) else "HEAD"
        count = git.count(top, outgoing)
        if not count:
            return done
        try:
            git.command(top, "push", "--quiet", "--set-upstream", remote, f"{branch}:{there}")
        except GitError as error:
            if "rejected" in error.message and "fetch first" in error.message:
                continue
            if "non-fast-forward" in error.message:
                continue
            raise
        done.pushed = count
        return done
    raise VaultError(f"{remote} changed each time we wanted to push", "lessons sync")


def _branch(top: Path) -> str:
    for name, what in (
        ("rebase-merge", "rebase"),
        ("rebase-apply", "rebase"),
        ("MERGE_HEAD", "merge"),
        ("CHERRY_PICK_HEAD", "cherry-pick"),
        ("REVERT_HEAD", "revert"),
    ):
        if git.git_path(top, name).exists():
            raise VaultError(
                f"a {what} is under way", f"git {what} --continue (or --abort), then lessons sync"
            )
    branch = git.current_branch(top)
    if not branch:
        raise VaultError("no branch is checked out", "git switch main, then lessons sync")
    return branch


def _followed(top: Path, branch: str) -> tuple[str, str]:
    """Give the remote and the name there of what a branch follows, or would if it were pushed."""
    remotes = git.command(top, "remote").split()
    remote = git.setting(top, f"branch.{branch}.remote")
    if remote not in remotes:
        remote = "origin" if "origin" in remotes else remotes[0] if len(remotes) == 1 else ""
    if not remote:
        hint = "git remote add origin URL, then lessons sync"
        raise VaultError("there is no remote to share the vault with", hint)
    there = git.setting(top, f"branch.{branch}.merge").removeprefix("refs/heads/")
    return remote, there or branch


def _take_in(top: Path, branch: str, upstream: str) -> int:
    """Put the branch on top of what was fetched; gives how many commits were rebased for it."""
    if not git.count(top, f"HEAD..{upstream}"):
        return 0
    if not git.command(top, "merge-base", "HEAD", upstream, check=False):
        if git.command(top, "rev-parse", "--is-shallow-repository") == "true":
            git.command(top, "fetch", "--quiet", "--unshallow")
        if not git.command(top, "merge-base", "HEAD", upstream, check=False):
            raise VaultError(
                f"{branch} and {upstream.removeprefix('refs/remotes/')} have no commit in common",
                "is that the right remote? git remote -v",
            )
    ahead = git.count(top, f"{upstream}..HEAD")
    tip = _rebased(top, upstream) if ahead else git.resolve(top, upstream)
    try:
        # keeps changes that are not committed, or refuses if they are in the way
        git.command(top, "checkout", "--quiet", "-B", branch, tip)
    except GitError as error:
        raise GitError(
            f"what is not committed here is in the way: {error.message}",
            "commit it (or git stash), then lessons sync",
        ) from None
    return ahead


def _rebased(top: Path, upstream: str) -> str:
    """Rebase HEAD in a worktree aside; gives the new tip. Raises VaultError on a conflict."""
    git.command(top, "worktree", "prune")  # of one that was killed
    with tempfile.TemporaryDirectory(prefix="lessons-sync-") as scratch:
        aside = Path(scratch) / "aside"
        git.command(top, *_NO_HOOKS, "worktree", "add", "--quiet", "--detach", str(aside), "HEAD")
        try:
            git.command(aside, *_NO_HOOKS, "rebase", "--quiet", "--rebase-merges", upstream)
            return git.command(aside, "rev-parse", "HEAD")
        except GitError as error:
            unmerged = git.command(
                aside, "diff", "--name-only", "-z", "--diff-filter=U", check=False
            )
            files = [name for name in unmerged.split("\0") if name]
            if not files:
                raise
            more = f" and {len(files) - 1} more" if len(files) > 1 else ""
            raise VaultError(
                f"{files[0]}{more} was changed here and there in different ways; nothing was done",
                "git pull --rebase, mend what stands between <<<<<<< and >>>>>>>, git add it, "
                "git rebase --continue, then lessons sync",
            ) from error
        finally:
            git.command(top, "worktree", "remove", "--force", str(aside), check=False)


def _refuse_secrets(vault: Vault, upstream: str) -> None:
    """Raise VaultError if a commit that is about to be pushed has a secret in a lesson."""
    for commit, path, data in git.outgoing(vault.folder, upstream):
        if not path.endswith(".md"):
            continue
        try:
            text = decode(data, path)
        except VaultError:
            continue
        for found in secrets.findings(path, text):
            raise VaultError(
                f"not pushed: commit {commit[:10]}, {path}:{found.line}: {found.message}",
                f"amend it, or take it out of the history: git rebase -i {commit[:10]}~",
            )
