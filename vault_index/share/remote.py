"""Fetch, rebase or merge, push: what `lessons sync` does, without ever leaving a rebase half done.

Own commits are joined with those of others in a worktree aside, beside the one people work in. Only
when that succeeded is the branch moved, in one step that keeps what is not committed or refuses to.
"""

from __future__ import annotations

import os
import random
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from vault_index import check, git
from vault_index.errors import GitError, VaultError
from vault_index.vault import printable

if TYPE_CHECKING:
    from vault_index.vault import Vault

TRIES = 8  # somebody may commit here or push there meanwhile
RETRY_SECONDS = 0.3  # times the number of the try, at most: others wait as well
_UNDER_WAY = {  # a file or folder of git's own, and the command that it is of
    **dict.fromkeys(("rebase-merge", "rebase-apply"), "rebase"),
    **{"MERGE_HEAD": "merge", "CHERRY_PICK_HEAD": "cherry-pick", "REVERT_HEAD": "revert"},
}


@dataclass(slots=True)
class SyncResult:
    """The work of a sync, in commits and files.

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
    lessons: int = 0  # in the index after it


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
    uncommitted = len(state.uncommitted) if state else 0
    done = SyncResult(branch, f"{remote}/{there}", uncommitted=uncommitted)
    with suppress(OSError):
        git.remove_asides(_PREFIX)
    git.command(top, "worktree", "prune", check=False)  # those of folders that are gone
    for number in range(TRIES):
        time.sleep(number * random.uniform(0, RETRY_SECONDS))
        try:
            _fetch(top, remote, there, upstream)
            if _take_in(top, branch, upstream, done):
                done.pushed = push(vault, top, branch, remote, there)
                return done
        except GitError as error:
            if not is_race(error):
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
    for name, what in _UNDER_WAY.items():
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
    taken_back = base if dropped else ""
    joined = join(top, old, new, done.remote, taken_back) if own else Joined(new)
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

    Changes that are not committed are kept, or it refuses. A commit that is made between the two steps
    stays the branch's tip, on top of `old`: the next try puts it on top of `tip`.
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


def push(vault: Vault, top: Path, branch: str, remote: str, there: str) -> int:
    """Push commits that the remote lacks and return their number. VaultError for a secret in them."""
    ours, upstream = f"refs/heads/{branch}", git.resolve(top, f"refs/remotes/{remote}/{there}")
    unknown = (ours, "--not", f"--remotes={remote}")
    for commit, path, finding in check.outgoing(vault, unknown):
        where = f"{printable(path)}:{finding.line}" if path else f"its message:{finding.line}"
        raise VaultError(
            f"not pushed: commit {commit[:10]}, {where}: {finding.message}",
            f"amend it, or take it out of the history: git rebase -i {commit[:10]}~",
        )
    count = git.count(top, *((ours, "--not", upstream) if upstream else unknown))
    if count:
        alone = ["--no-follow-tags"]
        sends = git.setting(top, "push.recurseSubmodules") in ("on-demand", "only")
        if sends or git.setting(top, "submodule.recurse") == "true":
            # commits of submodules, which nobody checked: refuse where they were not pushed before
            alone.append("--recurse-submodules=check")
        names = f"{ours}:refs/heads/{there}"
        git.command(top, "push", "--quiet", *alone, "--set-upstream", remote, names)
    return count


# The worktree aside ends with what the three-way merge of both sides holds. A rebase makes merge commits
# again from their parents and loses what somebody changed in them by hand; where its result differs from
# the merge, a merge commit takes its place.

RACES = (
    *("fetch first", "non-fast-forward", "cannot lock ref", "failed to update ref"),
    *("index.lock", "shallow.lock"),
)
_PREFIX = "lessons-sync-"
# what git leaves of a file that it cannot merge: with markers, deleted on one side, or one side whole
MARKED, DELETED, WHOLE = "marked", "deleted", "whole"
_ADVICE = {
    MARKED: "edit what is between <<<<<<< and >>>>>>>, git add it",
    DELETED: "git add {0} to keep it or git rm {0} to delete it",
    WHOLE: "git checkout --ours or --theirs {0}, git add it",
}
# hooks have nothing to index here, and settings of the user would move other branches, reorder
# commits or apply the resolution of an earlier conflict
_SETTINGS = tuple(
    word
    for setting in (
        *("core.hooksPath=/dev/null", "rerere.enabled=false", "rebase.updateRefs=false"),
        *("rebase.autoSquash=false", "rebase.autoStash=false", "rebase.forkPoint=false"),
        *("rebase.missingCommitsCheck=ignore", "merge.autoStash=false"),
    )
    for word in ("-c", setting)
)


@dataclass(frozen=True, slots=True)
class Joined:
    """The commit that holds both sides; `is_merge` if it is a merge, not a rebase."""

    tip: str
    is_merge: bool = False


@dataclass(frozen=True, slots=True)
class _Attempt:
    """The end of a rebase or merge: a commit or tree, else the reason against it."""

    result: str = ""
    conflicts: Mapping[str, str] = field(default_factory=dict)  # path -> MARKED, DELETED or WHOLE


def is_race(error: GitError) -> bool:
    """Whether git failed because somebody else changed the same ref or index at this moment."""
    return not git.is_full(error.message) and any(race in error.message for race in RACES)


def join(top: Path, old: str, new: str, remote: str, taken_back: str = "") -> Joined:
    """Return a commit that holds the own commits of `old` and the fetched ones of `new`.

    `remote` is the name of the other side, for messages. `taken_back` is the last commit that the
    remote no longer has; it and those before it are left out. Raises VaultError if both sides
    changed the same thing, or if commits were taken back below a merge that only a merge keeps.
    """
    onto = ("--onto", new, taken_back) if taken_back else (new,)
    own = (old, "--not", new, *([taken_back] if taken_back else []))
    has_merges = git.count(top, "--merges", *own) > 0
    with _worktree(top, old) as folder:
        sides = _on_one_base(folder, old, new, taken_back) if taken_back else (old, new)
        merged = _merge(folder, *sides)
        git.command(folder, *_SETTINGS, "reset", "--quiet", "--hard", old)
        rebased = _rebase(folder, *onto)
        if rebased.result:
            if merged.result == git.command(folder, "rev-parse", f"{rebased.result}^{{tree}}"):
                return Joined(rebased.result)
            # a merge compares the ends only: commit by commit there may be no conflict
            if not merged.result and not has_merges:
                return Joined(rebased.result)
        if not merged.result:
            raise _conflict(rebased.conflicts or merged.conflicts, has_merges)
        if taken_back:
            raise _taken_back(rebased.conflicts, old, remote)
        signed = git.command(
            folder, "config", "--type=bool", "--get", "commit.gpgSign", check=False
        )
        words = (
            "-p",
            old,
            "-p",
            new,
            *(["-S"] if signed == "true" else []),
            "-m",
            f"Merge {remote}",
        )
        return Joined(git.command(folder, "commit-tree", merged.result, *words), is_merge=True)


@contextmanager
def _worktree(top: Path, commit: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix=f"{_PREFIX}{os.getpid()}-") as scratch:
        folder = Path(scratch) / "aside"
        added = ("worktree", "add", "--quiet", "--detach", str(folder), commit)
        git.command(top, *_SETTINGS, *added)
        try:
            yield folder
        finally:
            git.command(top, "worktree", "remove", "--force", str(folder), check=False)


def _rebase(folder: Path, *onto: str) -> _Attempt:
    try:
        git.command(folder, *_SETTINGS, "rebase", "--quiet", "--rebase-merges", *onto)
    except GitError as error:
        conflicts = _unmerged(folder)
        if is_race(error) or git.is_full(error.message):
            raise
        return _Attempt(conflicts=conflicts)
    return _Attempt(git.command(folder, "rev-parse", "HEAD"))


def _merge(folder: Path, ours: str, theirs: str) -> _Attempt:
    """Merge two commits without a commit; the result is a tree."""
    how = ("--quiet", "--no-ff", "--no-commit", "--no-verify-signatures")
    git.command(folder, *_SETTINGS, "checkout", "--quiet", "--detach", ours)
    try:
        git.command(folder, *_SETTINGS, "merge", *how, theirs)
    except GitError:
        conflicts = _unmerged(folder)
        if not conflicts:
            raise
        return _Attempt(conflicts=conflicts)
    return _Attempt(git.command(folder, "write-tree"))


def _on_one_base(folder: Path, old: str, new: str, base: str) -> tuple[str, str]:
    """Return two commits with the files of `old` and `new`, for which git takes `base` as the base."""

    def commit(source: str, *parents: str) -> str:
        words = [word for parent in parents for word in ("-p", parent)]
        return git.command(folder, "commit-tree", f"{source}^{{tree}}", *words, "-m", source)

    common = commit(base)
    return commit(old, common), commit(new, common)


def _unmerged(folder: Path) -> dict[str, str]:
    """Return the paths in conflict, and what git left of each: see `_Attempt`."""
    listed = git.command(folder, "ls-files", "--unmerged", "-z", check=False)
    sides: dict[str, set[str]] = {}
    for entry in filter(None, listed.split("\0")):
        said, _, path = entry.partition("\t")
        sides.setdefault(path, set()).add(said.split()[2])
    left: dict[str, str] = {}
    for path, there in sides.items():
        try:
            marked = b"\n<<<<<<< " in b"\n" + (folder / path).read_bytes()
        except OSError:
            marked = False
        left[path] = MARKED if marked else WHOLE if {"2", "3"} <= there else DELETED
    return left


def _conflict(conflicts: Mapping[str, str], has_merges: bool) -> VaultError:
    more = f" and {len(conflicts) - 1} more" if len(conflicts) > 1 else ""
    first = next(iter(conflicts))
    what = (
        "was changed on one side and deleted on the other"
        if conflicts[first] == DELETED
        else "was changed here and there in different ways"
    )
    of_kind = {kind: [path for path in conflicts if conflicts[path] == kind] for kind in _ADVICE}
    todo = "; ".join(_ADVICE[kind].format(paths[0]) for kind, paths in of_kind.items() if paths)
    how, then = "--rebase", "git rebase --continue"
    if has_merges:  # that rebase would lose what was changed in them by hand
        how, then = "--no-rebase", "git commit"
    return VaultError(
        f"{first}{more} {what}; nothing was done",
        f"git pull {how}, {todo}, {then}, then lessons sync",
    )


def _taken_back(conflicts: Mapping[str, str], old: str, remote: str) -> VaultError:
    if conflicts:
        return _conflict(conflicts, has_merges=False)
    return VaultError(
        f"{remote} took commits back, and without them a rebase would lose changes that your "
        "merge commits hold; nothing was done",
        f"git pull --rebase=merges, add what git diff {old[:10]} HEAD shows as lost, "
        "git commit, then lessons sync",
    )
