"""Fetch, rebase, push: what `lessons sync` does. It never forces a push.

A conflict is found before anything is changed, or the rebase is taken back.
"""

from __future__ import annotations

import os
import random
import re
import shlex
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from vault_index import check, git
from vault_index.check import harmless
from vault_index.errors import GitError, VaultError
from vault_index.vault import printable

if TYPE_CHECKING:
    from vault_index.vault import Vault

TRIES = 8  # others may push meanwhile
RETRY_SECONDS = 0.3  # times the number of the try, at most: others wait as well
_RACES = ("fetch first", "non-fast-forward", "cannot lock ref", "failed to update ref", ".lock")
_REBASE = ("rebase", "--quiet", "--merge", "--no-rebase-merges", "--autostash")
# settings of the user would move other branches, or apply the resolution of an earlier conflict
_SETTINGS = ("-c", "rerere.enabled=false", "-c", "rebase.updateRefs=false")
# git runs the program git-remote-NAME for NAME::address, and for a scheme that it does not know
_HELPER = re.compile(
    r"(?P<name>[A-Za-z0-9][\w+.-]*)::"
    r"|(?!(?:file|ssh|git|git\+ssh|ssh\+git|https?|ftps?)://)(?P<scheme>[A-Za-z0-9][\w+.-]*)://"
)
_UNDER_WAY = {  # a file or folder of git's own, and the command that it is of
    **dict.fromkeys(("rebase-merge", "rebase-apply"), "rebase"),
    **{"MERGE_HEAD": "merge", "CHERRY_PICK_HEAD": "cherry-pick", "REVERT_HEAD": "revert"},
}


@dataclass(slots=True)
class SyncResult:
    """The work of a sync, in commits and files.

    `rebased` are commits made here, put on top of the others'. `dropped` are commits that we had
    from the remote, and that it no longer has.
    """

    branch: str
    remote: str
    fetched: int = 0
    rebased: int = 0
    dropped: int = 0
    pushed: int = 0
    uncommitted: int = 0
    lessons: int = 0  # in the index after it


def sync(vault: Vault) -> SyncResult:
    """Put this branch on top of the one it follows, and push it.

    Files that are not committed keep their content. Raises GitError, and VaultError where the user
    has to do something first.
    """
    top = git.top(vault.root)
    branch = _branch(top)
    remote, target = _followed(top, branch)
    upstream = f"refs/remotes/{remote}/{target}"
    state = git.worktree(vault.lessons_dir)
    uncommitted = state.uncommitted if state else 0
    result = SyncResult(branch, f"{remote}/{target}", uncommitted=uncommitted)
    for number in range(TRIES):
        time.sleep(number * random.uniform(0, RETRY_SECONDS))
        try:
            _fetch(top, remote, target, upstream)
            _take_in(top, branch, remote, target, result)
            result.pushed = push(vault, top, branch, remote, target)
            return result
        except GitError as error:
            is_race = any(race in error.message for race in _RACES)
            if git.is_full(error.message) or not is_race:
                raise
    raise VaultError(f"{branch} changed each time, here or in {remote}", "lessons sync")


def _fetch(top: Path, remote: str, target: str, upstream: str) -> None:
    try:
        git.command(top, "fetch", "--quiet", remote, f"+refs/heads/{target}:{upstream}")
    except GitError as error:
        if "couldn't find remote ref" not in error.message:
            raise
        with suppress(GitError):  # it was deleted there, and may be here
            git.command(top, "update-ref", "-d", upstream)
        git.command(top, "fetch", "--quiet", remote)


def _branch(top: Path) -> str:
    for name, what in _UNDER_WAY.items():
        if (git.git_folder(top) / name).exists():
            hint = f"git {what} --abort, then lessons sync; or finish it, if you began it"
            if what == "rebase":  # a folder that was copied here may bring commands along
                hint += ": --continue runs what `git status` lists as next, `exec` lines, too"
            raise VaultError(f"a {what} is under way", hint)
    branch = git.command(top, "branch", "--show-current")
    if not branch:
        raise VaultError("no branch is checked out", "git switch main, then lessons sync")
    return branch


def _followed(top: Path, branch: str) -> tuple[str, str]:
    """Return the remote and the branch there that a branch follows, or would if it were pushed."""
    remotes = git.command(top, "remote").split()
    remote = git.setting(top, f"branch.{branch}.remote")
    target = git.setting(top, f"branch.{branch}.merge").removeprefix("refs/heads/")
    if remote not in remotes:  # none, or "." for a branch of this repository
        remote = "origin" if "origin" in remotes else remotes[0] if len(remotes) == 1 else ""
        target = branch
    if not remote:
        hint = "git remote add origin URL, then lessons sync"
        raise VaultError("there is no remote to share the vault with", hint)
    target = target or branch
    if target != branch and git.setting(top, "push.default") not in ("upstream", "tracking"):
        raise VaultError(  # as git push itself
            f"{branch} follows {remote}/{target}, which has another name",
            f"git branch --unset-upstream, and lessons sync shares it as {remote}/{branch}; or "
            f"git config push.default upstream, and it goes to {target}",
        )
    pushed_to = git.setting(top, f"branch.{branch}.pushRemote")
    pushed_to = pushed_to or git.setting(top, "remote.pushDefault") or remote
    if pushed_to != remote:
        raise VaultError(
            f"{branch} comes from {remote} and is pushed to {pushed_to}: that is for pull requests",
            "git pull --rebase && git push",
        )
    _refuse_brought_along(top, remote)
    return remote, target


def _refuse_brought_along(top: Path, remote: str) -> None:
    """Refuse remotes that a copied folder can name: a program, and a repository whose hooks would run."""
    sides = [["remote", "get-url", "--all", *push, remote] for push in ([], ["--push"])]
    for url in [url for words in sides for url in git.command(top, *words).split("\n")]:
        if helper := _HELPER.match(url):
            program = f"git-remote-{helper['name'] or helper['scheme']}"
            raise VaultError(
                f"the remote {printable(url)} is reached by the program {program}, and `lessons`"
                " runs none that a repository names",
                "git pull --rebase && git push",
            )
        if not _is_address(url):
            _refuse_near(top, remote, url)


def _is_address(url: str) -> bool:
    return ":" in url.removeprefix("file://").partition("/")[0]


def _refuse_near(top: Path, remote: str, url: str) -> None:
    """Refuse a repository on this machine that may have come with a folder, inside it or beside it."""
    name = url.removeprefix("file://")
    path = Path(os.path.normpath(top / name))
    is_inside = any(each.is_relative_to(top) for each in (path, Path(os.path.realpath(path))))
    if is_inside or path.parts[1:2] in (("proc",), ("dev",)):
        raise VaultError(
            f"the remote {printable(url)} may have come with this folder, and git would run its"
            " hooks",
            f"git remote -v, then git remote set-url {remote} URL: an address, or a full path"
            " elsewhere",
        )
    if not Path(name).is_absolute():
        raise VaultError(
            f"name the remote by a full path: {printable(url)} may have come with this folder, and"
            " git would run its hooks",
            f"git remote set-url {shlex.quote(remote)} {shlex.quote(printable(str(path)))},"
            " if it is yours",
        )


def _take_in(top: Path, branch: str, remote: str, target: str, result: SyncResult) -> None:
    upstream = f"refs/remotes/{remote}/{target}"
    old, new = git.resolve(top, f"refs/heads/{branch}"), git.resolve(top, upstream)
    if not old:
        hint = f"git pull {remote} {target}, or git commit, then lessons sync"
        raise VaultError("nothing is committed here yet", hint)
    if not new:
        return
    base = _base(top, branch, old, upstream, remote)
    fetched, dropped = git.count(top, f"{old}..{new}"), git.count(top, base, "--not", new)
    if not fetched and not dropped:
        return
    unpushed = (f"{base}..{old}", "--not", new)
    if git.count(top, "--merges", *unpushed):
        raise VaultError(
            "a commit of yours is a merge, and a rebase may lose what was changed in it by hand",
            f"git pull --no-rebase {remote} {target}, then lessons sync",
        )
    if path := git.in_the_way(top, old if dropped else base, new):
        raise VaultError(
            f"what is not committed here is in the way: {path}",
            f"commit {path}, or move it elsewhere, then lessons sync",
        )
    if not dropped and (paths := git.conflicts(top, old, new)):
        raise _conflict(paths)
    mine = git.count(top, *unpushed)
    is_ahead = not mine and not dropped
    how = ("merge", "--ff-only", new) if is_ahead else (*_REBASE, "--onto", new, base)
    try:
        git.command(top, *_SETTINGS, *how)
    except GitError:
        try:
            paths = git.unmerged(top)
        finally:
            with suppress(GitError):  # it had not begun
                git.command(top, "rebase", "--abort")
        if not paths:
            raise
        raise _conflict(paths) from None
    result.fetched, result.rebased = result.fetched + fetched, result.rebased + mine
    result.dropped += dropped


def _conflict(paths: Sequence[str]) -> VaultError:
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return VaultError(
        f"{printable(paths[0])}{more} was changed here and there in different ways;"
        " nothing was changed",
        "git pull --rebase --autostash, edit what is between <<<<<<< and >>>>>>>,"
        " git add it (or git rm what shall be deleted), git rebase --continue, then lessons sync",
    )


def _base(top: Path, branch: str, old: str, upstream: str, remote: str) -> str:
    """Return the last commit that the remote has or had: what it no longer has was removed on purpose."""
    none = (0, git.NOT_THERE)
    base = git.command(top, "merge-base", "--fork-point", upstream, old, answers=none)
    base = base or git.command(top, "merge-base", old, upstream, answers=none)
    if not base and git.cut_of(top):
        git.command(top, "fetch", "--quiet", "--unshallow", remote)
        base = git.command(top, "merge-base", old, upstream, answers=none)
    if not base:
        raise VaultError(
            f"{branch} and {upstream.removeprefix('refs/remotes/')} have no commit in common",
            "check that it is the right remote: git remote -v",
        )
    return base


def push(vault: Vault, top: Path, branch: str, remote: str, target: str) -> int:
    """Push commits that the remote lacks and return their number. VaultError for a secret in them."""
    ours, upstream = f"refs/heads/{branch}", git.resolve(top, f"refs/remotes/{remote}/{target}")
    unknown = (ours, "--not", f"--remotes={remote}")
    for commit, path, finding in check.outgoing(vault, unknown, upstream):
        where = f"{printable(path)}:{finding.line}" if path else f"its message:{finding.line}"
        raise VaultError(
            f"not pushed: commit {commit[:10]}, {where}: {finding.message}",
            f"amend it, or take it out of the history: git rebase -i {commit[:10]}~;"
            f" if it is no secret: {harmless.command([finding])}",
        )
    count = git.count(top, *((ours, "--not", upstream) if upstream else unknown))
    if count:
        names = f"{ours}:refs/heads/{target}"
        git.command(top, "push", "--quiet", "--no-follow-tags", "--set-upstream", remote, names)
    return count
