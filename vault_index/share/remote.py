"""Fetch, rebase or merge, push: what `lessons sync` does, without ever leaving a rebase half done.

Own commits are joined with those of others in a worktree aside, beside the one people work in. Only
when that succeeded is the branch moved, in one step that keeps what is not committed or refuses to.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from vault_index import check, git
from vault_index.errors import GitError, VaultError
from vault_index.share import aside
from vault_index.vault import printable

if TYPE_CHECKING:
    from vault_index.vault import Vault

TRIES = 8  # somebody may commit here or push there meanwhile
RETRY_SECONDS = 0.3  # times the number of the try, at most: others wait as well


@dataclass(slots=True)
class SyncResult:
    """What a sync did, in commits and files.

    `rebased` are own commits put on top of those of others; `merged` are own commits that a merge
    joins with them, where a rebase did not apply or would have lost something. `dropped` are
    commits that the remote no longer has, of those that we had from it.
    """

    branch: str
    remote: str
    fetched: int = 0
    rebased: int = 0
    merged: int = 0
    dropped: int = 0
    pushed: int = 0
    uncommitted: int = 0


def sync(vault: Vault) -> SyncResult:
    """Join this branch and the one it follows; nothing is forced, nothing is merged twice.

    Files that are not committed stay as they are. Raises GitError, and VaultError where the
    user has to do something first.
    """
    top = git.top(vault.root)
    branch = _branch(top)
    remote, there = _followed(top, branch)
    upstream = f"refs/remotes/{remote}/{there}"
    state = git.worktree(vault.lessons_dir)
    done = SyncResult(
        branch, f"{remote}/{there}", uncommitted=len(state.uncommitted) if state else 0
    )
    aside.tidy_up(top)
    for number in range(TRIES):
        time.sleep(number * random.uniform(0, RETRY_SECONDS))
        try:
            _fetch(top, remote, there, upstream)
            if _take_in(top, branch, upstream, done):
                done.pushed = _push(vault, top, branch, remote, there)
                return done
        except GitError as error:
            if not aside.is_race(error):
                raise
    raise VaultError(f"{branch} changed each time, here or in {remote}", "lessons sync")


def _fetch(top: Path, remote: str, there: str, upstream: str) -> None:
    """Fetch the one branch, also in a clone that fetches only another one."""
    try:
        git.command(top, "fetch", "--quiet", remote, f"+refs/heads/{there}:{upstream}")
    except GitError as error:
        if "couldn't find remote ref" not in error.message:
            raise
        git.command(top, "update-ref", "-d", upstream, check=False)  # it was deleted there
        git.command(top, "fetch", "--quiet", remote)


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
    """Return the remote and the branch there that a branch follows, or would if it were pushed."""
    remotes = git.command(top, "remote").split()
    remote = git.setting(top, f"branch.{branch}.remote")
    there = git.setting(top, f"branch.{branch}.merge").removeprefix("refs/heads/")
    if remote not in remotes:  # none, or "." for a branch of this repository
        remote = "origin" if "origin" in remotes else remotes[0] if len(remotes) == 1 else ""
        there = branch
    if not remote:
        hint = "git remote add origin URL, then lessons sync"
        raise VaultError("there is no remote to share the vault with", hint)
    there = there or branch
    if there != branch and git.setting(top, "push.default") not in ("upstream", "tracking"):
        raise VaultError(  # as git push itself
            f"{branch} follows {remote}/{there}, which has another name",
            f"git branch --unset-upstream, and lessons sync shares it as {remote}/{branch}; or "
            f"git config push.default upstream, and it goes to {there}",
        )
    pushed_to = git.setting(top, f"branch.{branch}.pushRemote")
    pushed_to = pushed_to or git.setting(top, "remote.pushDefault") or remote
    if pushed_to != remote:
        raise VaultError(
            f"{branch} comes from {remote} and is pushed to {pushed_to}: that is for pull requests",
            "git pull --rebase && git push",
        )
    return remote, there


def _take_in(top: Path, branch: str, upstream: str, done: SyncResult) -> bool:
    """Put the branch on top of what was fetched. False if somebody changed it in the meantime."""
    old, new = git.resolve(top, f"refs/heads/{branch}"), git.resolve(top, upstream)
    if not old:
        hint = f"git pull {done.remote.replace('/', ' ', 1)}, or git commit, then lessons sync"
        raise VaultError("nothing is committed here yet", hint)
    if not new:
        return True
    fetched = git.count(top, f"{old}..{new}")
    base = _base(top, branch, old, upstream)
    dropped = git.count(top, base, "--not", new)
    if not fetched and not dropped:
        return True
    own = git.count(top, f"{base}..{old}", "--not", new)
    joined = aside.Joined(new)
    if own:
        joined = aside.join(top, old, new, done.remote, base if dropped else "")
    if git.current_branch(top) != branch:
        raise VaultError(f"{branch} is no longer checked out; nothing was done", "lessons sync")
    if git.resolve(top, f"refs/heads/{branch}") != old:
        return False
    _move(top, branch, old, joined.tip)
    done.fetched += fetched
    done.rebased += 0 if joined.is_merge else own
    done.merged += own if joined.is_merge else 0
    done.dropped += dropped
    return git.resolve(top, f"refs/heads/{branch}") == joined.tip


def _base(top: Path, branch: str, old: str, upstream: str) -> str:
    """Return the commit after which the branch is our own: of the remote, now or formerly.

    Commits that the remote no longer has were removed there on purpose, as `git pull --rebase` sees it.
    """
    base = git.command(top, "merge-base", "--fork-point", upstream, old, check=False)
    base = base or git.command(top, "merge-base", old, upstream, check=False)
    if not base and git.command(top, "rev-parse", "--is-shallow-repository") == "true":
        git.command(top, "fetch", "--quiet", "--unshallow")
        base = git.command(top, "merge-base", old, upstream, check=False)
    if not base:
        raise VaultError(
            f"{branch} and {upstream.removeprefix('refs/remotes/')} have no commit in common",
            "check that it is the right remote: git remote -v",
        )
    return base


def _move(top: Path, branch: str, old: str, tip: str) -> None:
    """Move the branch that is checked out from one commit to another, with its files.

    What is not committed is kept, or it refuses. A commit that is made between the two steps stays
    the branch's tip, on top of `old`: the next try puts it on top of `tip`.
    """
    # a file that was only touched has not changed
    git.command(top, "update-index", "-q", "--refresh", check=False)
    try:
        git.command(top, "read-tree", "-n", "-m", "-u", old, tip)
        for lost in git.overwritten_files(top, old, tip):
            raise VaultError(
                f"what is not committed here is in the way: {lost.path} {lost.reason}", lost.hint
            )
        git.command(top, "read-tree", "-m", "-u", old, tip)
    except GitError as error:
        if "index.lock" in error.message or git.is_full(error.message):
            raise
        raise GitError(
            f"what is not committed here is in the way: {error.message}",
            "commit it (or git stash), then lessons sync",
        ) from None
    try:
        git.command(top, "update-ref", "-m", "lessons sync", f"refs/heads/{branch}", tip, old)
    except GitError:
        if git.resolve(top, f"refs/heads/{branch}") == old:  # a full disk: the files go back
            git.command(top, "read-tree", "-m", "-u", tip, old, check=False)
            raise


def _push(vault: Vault, top: Path, branch: str, remote: str, there: str) -> int:
    """Push commits that the remote lacks and return their number. VaultError for a secret in them."""
    ours, upstream = f"refs/heads/{branch}", git.resolve(top, f"refs/remotes/{remote}/{there}")
    unknown = (ours, "--not", f"--remotes={remote}")
    _refuse_secrets(vault, unknown)
    count = git.count(top, *((ours, "--not", upstream) if upstream else unknown))
    if count:
        names = f"{ours}:refs/heads/{there}"
        alone = ("--no-follow-tags", *_without_submodules(top))
        git.command(top, "push", "--quiet", *alone, "--set-upstream", remote, names)
    return count


def _without_submodules(top: Path) -> list[str]:
    """Return the options with which a push sends no commits of submodules, which nobody checked."""
    sends = git.setting(top, "push.recurseSubmodules") in ("on-demand", "only")
    if sends or git.setting(top, "submodule.recurse") == "true":
        return ["--recurse-submodules=check"]  # refuse where they were not pushed before
    return []


def _refuse_secrets(vault: Vault, unknown: Sequence[str]) -> None:
    """Raise VaultError if a commit that is about to be pushed has a secret in what agents read.

    Its message is looked at, too, if the commit changes such a file.
    """
    for commit, path, finding in check.outgoing(vault, unknown):
        where = f"{printable(path)}:{finding.line}" if path else f"its message:{finding.line}"
        raise VaultError(
            f"not pushed: commit {commit[:10]}, {where}: {finding.message}",
            f"amend it, or take it out of the history: git rebase -i {commit[:10]}~",
        )
