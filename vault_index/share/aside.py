"""Joining own commits and fetched ones in a worktree aside, beside the one people work in.

The result holds what the three-way merge of both sides holds. A rebase makes merge commits again
from their parents and loses what somebody changed in them by hand; where its result differs from
the merge, a merge commit takes its place.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from vault_index import git
from vault_index.errors import GitError, VaultError

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
    """What a rebase or merge came to: a commit or tree, else the reason it has none."""

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
        return Joined(_merge_commit(folder, merged.result, old, new, remote), is_merge=True)


def tidy_up(top: Path) -> None:
    """Remove the worktrees aside of processes that were killed."""
    git.command(top, "worktree", "prune", check=False)  # of folders that somebody else removed
    listed = git.command(top, "worktree", "list", "--porcelain", check=False)
    scratch = os.path.realpath(tempfile.gettempdir())
    pattern = rf"^worktree (.*/{_PREFIX}(\d+)-[^/\n]+)/aside$"
    for match in re.finditer(pattern, listed, re.MULTILINE):
        folder = Path(match[1])
        if os.path.realpath(folder.parent) == scratch and not _is_alive(int(match[2])):
            git.command(top, "worktree", "remove", "--force", f"{folder}/aside", check=False)
            shutil.rmtree(folder, ignore_errors=True)


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


def _merge_commit(folder: Path, tree: str, old: str, new: str, remote: str) -> str:
    signed = git.command(folder, "config", "--type=bool", "--get", "commit.gpgSign", check=False)
    words = ("-p", old, "-p", new, *(["-S"] if signed == "true" else []))
    return git.command(folder, "commit-tree", tree, *words, "-m", f"Merge {remote}")


def _unmerged(folder: Path) -> dict[str, str]:
    """Return the paths in conflict, and what git left of each: see `_Attempt`."""
    listed = git.command(folder, "ls-files", "--unmerged", "-z", check=False)
    sides: dict[str, set[str]] = {}
    for entry in filter(None, listed.split("\0")):
        said, _, path = entry.partition("\t")
        sides.setdefault(path, set()).add(said.split()[2])
    found = {}
    for path, there in sides.items():
        try:
            marked = b"\n<<<<<<< " in b"\n" + (folder / path).read_bytes()
        except OSError:
            marked = False
        found[path] = MARKED if marked else WHOLE if {"2", "3"} <= there else DELETED
    return found


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


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
