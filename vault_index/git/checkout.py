"""The state of a checkout: the branch, what is not committed, what is staged, the settings.

And what stops a move of the branch.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from vault_index.errors import GitError, GitUnavailableError, NoRepositoryError, WriteError
from vault_index.git.dotgit import git_folder, is_bare, top_of
from vault_index.git.history import name_changes
from vault_index.git.run import (
    NOT_THERE,
    SUBMODULE,
    USAGE_ERROR,
    ask,
    ask_bytes,
    ask_history,
    check_readable,
    command,
)
from vault_index.hotpath import index_files

RECENT_COMMITS, COMMITS = 10, 20  # subjects at most, and commits that are looked at
_ASIDE = "lessons-commit-"  # the folder of a commit's content
CHANGED_FILES = 30
ORIGIN = "remote.origin.url"
_NO_EDITOR = (":", "true", "/bin/true", "/usr/bin/true")
# in a submodule git starts another git, which goes by the submodule's own settings
_STATUS = ("status", "--porcelain", "-z", "--no-renames", "--ignore-submodules=all")


@dataclass(frozen=True, slots=True)
class Activity:
    """The present work in a project: enough to look for lessons before anyone has typed a prompt."""

    name: str
    branch: str = ""
    subjects: tuple[str, ...] = ()  # of the last ten commits, newest first
    changed: tuple[str, ...] = ()  # paths with uncommitted changes


@dataclass(frozen=True, slots=True)
class Worktree:
    """The state of the repository a vault lives in, for `lessons status`.

    If git does not read it, all else is empty, `error` says why, and `hint` what to do.
    """

    branch: str = ""
    head: str = ""
    uncommitted: int = 0  # files below the vault's folder
    error: str = ""
    hint: str = ""


def reflog(folder: Path) -> Path | None:
    """Return the file that each commit, checkout and reset appends to; None without a repository."""
    top = top_of(folder)
    return git_folder(top) / "logs/HEAD" if top else None


def activity(folder: Path, besides: Path) -> Activity:
    """Return the name, branch, recent subjects and changed files of the project in a folder.

    Changes below the folder `besides` are not its work. It is the name alone where git does not answer:
    what is looked for by it is then less, and never wrong.
    """
    top = top_of(folder)
    if top is None:
        return Activity(folder.name)
    with suppress(GitError):
        return _activity(top, besides)
    return Activity(top.name)


def _activity(top: Path, besides: Path) -> Activity:
    inside = os.path.relpath(os.path.realpath(besides), os.path.realpath(top)) + "/"
    subjects = []
    log = ("log", f"-{COMMITS}", "--format=%x01%s", "--name-only", "-z")
    for commit in ask_history(top, *log).split("\1")[1:]:
        subject, *names = (part.strip("\n") for part in commit.split("\0"))
        paths = [name for name in names if name]
        if not paths or not all(path.startswith(inside) for path in paths):
            subjects.append(subject)
    changed = (path for path in _changed(ask(top, *_STATUS)) if not path.startswith(inside))
    return Activity(
        name=top.name,
        branch=ask(top, "branch", "--show-current"),
        subjects=tuple(subjects[:RECENT_COMMITS]),
        changed=tuple(islice(changed, CHANGED_FILES)),
    )


def worktree(folder: Path) -> Worktree | None:
    """Return branch, commit and uncommitted files of the repository around a folder, if there is one.

    Raises GitError where git does not read it.
    """
    top = top_of(folder)
    if top is None:
        return None
    return Worktree(
        branch=ask(top, "branch", "--show-current") or "detached",
        head=ask_history(top, "rev-parse", "--short", "--verify", "HEAD"),
        uncommitted=len(_changed(ask(top, *_STATUS, "--untracked-files=all", "--", str(folder)))),
    )


def seen_worktree(folder: Path) -> Worktree | None:
    """Call `worktree`, and return its error as a value."""
    try:
        return worktree(folder)
    except GitError as error:
        return Worktree(error=error.message, hint=error.hint)


def _changed(status: str) -> tuple[str, ...]:
    return tuple(line[3:] for line in status.split("\0") if len(line) > 3)


def top(folder: Path) -> Path:
    """Return the top folder of the repository around a folder. Raises GitError without one."""
    if found := top_of(folder):
        return found
    raise NoRepositoryError(f"{folder} is in no git repository", "git init, or lessons init")


def setting(folder: Path, key: str) -> str:
    """Return a setting of git, "" if it is unset. Raises GitError."""
    value = command(folder, "config", "--get", key, answers=(0, NOT_THERE))
    if not value:
        check_readable(folder)  # else git passes over the repository's own settings without a word
    return value


def editor(folder: Path) -> str:
    """Return the command of the editor that git opens for this user; "" where none is named.

    A `GIT_EDITOR` that does nothing is not an editor: programs that run git unattended set it.
    """
    named = os.environ.get("GIT_EDITOR", "").strip()
    if named and named not in _NO_EDITOR:
        return named
    with suppress(GitError):  # then another editor is tried
        words = ("config", "--global", "--get", "core.editor")
        return command(folder, *words, answers=(0, NOT_THERE)).strip()
    return ""


def configure(folder: Path, key: str, value: str) -> bool:
    """Set a setting of the repository. False if it was so already. Raises GitError."""
    if setting(folder, key) == value:
        return False
    command(folder, "config", "--local", key, value)
    return True


def git_path(folder: Path, name: str) -> Path:
    """Return the path of a file of git's own, such as MERGE_HEAD, in this worktree."""
    return folder / command(folder, "rev-parse", "--git-path", name)


def active_hooks(folder: Path, *, default: bool = False) -> list[str]:
    """List the hooks that git would run; with `default`, those in the repository's own folder."""
    where = Path(command(folder, "rev-parse", "--git-common-dir"), "hooks")
    hooks = folder / where if default else git_path(folder, "hooks")
    listed = sorted(hooks.iterdir()) if hooks.is_dir() else []
    return [str(hook) for hook in listed if hook.suffix != ".sample" and os.access(hook, os.X_OK)]


def files(folder: Path) -> list[str]:
    """Return the files below a folder that git tracks, relative to it.

    Those that it does not track are not asked for: git reads each `.gitignore` then, and would wait
    for ever for a pipe of that name.
    """
    listed = ask(top_of(folder), "ls-files", "-z", folder=folder).split("\0")
    return sorted(set(filter(None, listed)))


def staged(top: Path) -> dict[str, str]:
    """Return the files that the next commit adds or changes, by path from the top, and their blobs."""
    how = ("--cached", "--raw", "--no-abbrev", "-z", "--no-renames", "--no-ext-diff")
    changes = name_changes(ask(top_of(top), "diff", *how, "--diff-filter=AMT"))
    return {change.path: change.blob for change in changes if change.mode != SUBMODULE}


def root_commit(folder: Path) -> str:
    """Return the first commit of the history here, of several the smallest; "" without a commit."""
    roots = ask_history(top_of(folder), "rev-list", "--max-parents=0", "HEAD").split()
    return min(roots, default="")


def ignored(top: Path, paths: Collection[str]) -> set[str]:
    """Return which paths, relative to the top of a repository, git does not track and ignores.

    A repository below, such as a submodule, is asked about its own paths. Raises GitError where a
    repository cannot be read.
    """
    pending, names = [sorted(paths)] if paths else [], set()
    while pending:
        some = pending.pop()
        try:
            names |= _ignored(top, some)
        except GitUnavailableError:
            raise
        except GitError:
            if middle := len(some) // 2:  # it refuses one of them
                pending += [some[:middle], some[middle:]]
            else:
                names |= _ignored_below(top, some[0])
    return names


def _ignored(top: Path, paths: Sequence[str]) -> set[str]:
    # each path is answered as <source> <line> <pattern> <path>, without a source if not ignored
    output = ask_bytes(
        top,
        "--no-literal-pathspecs",  # which it knows nothing of
        *("check-ignore", "--stdin", "-z", "--verbose", "--non-matching"),
        stdin="".join(f"./{path}\0" for path in paths),
        answers=(0, NOT_THERE),  # none of them is
    )
    answers = os.fsdecode(output).split("\0")
    return {
        path.removeprefix("./")
        for source, rule, path in zip(answers[0::4], answers[2::4], answers[3::4], strict=False)
        if source and not rule.startswith("!")
    }


def _ignored_below(top: Path, path: str) -> set[str]:
    """Ask the repository that has a path which another one refuses; no other one: it is beyond a link."""
    inner = top_of((top / path).parent)
    if inner in (None, top) or not inner.is_relative_to(top):
        return set()
    inside = os.path.relpath(top / path, inner)
    return {path} if ignored(inner, [inside]) else set()


def commit_file(folder: Path, path: str, data: bytes, message: Sequence[str]) -> None:
    """Commit one file with a content that the work tree need not have yet.

    Git takes it from a work tree aside, so at no moment a kill leaves it staged and not committed.
    `path` is relative to the folder, `message` the options of `git commit` for it. Raises GitError,
    with nothing staged.
    """
    import tempfile

    above = top(folder)
    inside, now = os.path.relpath(folder / path, above), folder / path
    if ignored(above, [inside]):
        raise GitError(f"git add: {inside} is ignored by a .gitignore", "git check-ignore -v")
    try:
        _remove_asides()
        with tempfile.TemporaryDirectory(prefix=f"{_ASIDE}{os.getpid()}-") as aside:
            file = Path(aside, inside)
            file.parent.mkdir(parents=True)
            file.write_bytes(data)
            file.chmod(now.stat().st_mode & 0o777 if now.exists() else 0o644)
            _commit_from(above, aside, inside, message)
    except OSError as error:
        raise GitError(f"git commit: {error.strerror or error}", "free some space") from None


def _commit_from(above: Path, aside: str, inside: str, message: Sequence[str]) -> None:
    words = (f"--work-tree={aside}", "--no-optional-locks", "--literal-pathspecs")
    is_new = not command(above, *words, "ls-files", "--", inside)
    if is_new:  # a commit of a path alone asks for one that git knows
        command(above, *words, "add", "--intent-to-add", "--", inside)
    try:
        if command(above, *words, "status", "--porcelain", "--", inside):
            command(above, *words, "commit", "--quiet", *message, "--", inside)
    except GitError:
        if is_new:
            with suppress(GitError):  # the first error counts
                command(above, "update-index", "--force-remove", "--", inside)
        raise


def _remove_asides() -> None:
    import shutil
    import tempfile

    for folder in Path(tempfile.gettempdir()).glob(f"{_ASIDE}*-*"):
        pid = folder.name.removeprefix(_ASIDE).partition("-")[0]
        is_left = pid.isdigit() and not index_files.is_alive(int(pid))
        if is_left and folder.lstat().st_uid == os.geteuid():
            shutil.rmtree(folder, ignore_errors=True)


def start_repository(folder: Path) -> bool:
    """Make a folder a git repository unless it is inside one. Tells whether one was made.

    Raises WriteError, and GitError for a bare repository: it has no place for files.
    """
    if top_of(folder) is not None:
        return False
    if is_bare(folder):
        raise GitError(f"{folder} is a bare repository", "clone it, and lessons init in the clone")
    try:
        command(folder, "init", "--quiet")
    except GitError as error:
        raise WriteError(f"{folder}: {error.message}", error.hint) from None
    return True


_ABSENT = "000000"


def in_the_way(top: Path, old: str, new: str) -> str:
    """Return a path that is not committed here, and differs between two commits; "" for none.

    Also of a file that git ignores, which it would overwrite without a word.
    """
    changed = _changed(ask(top_of(top), *_STATUS, "--untracked-files=no"))
    printed = command(top, "diff-tree", "-r", "-z", "--raw", "--no-renames", old, new)
    changes = list(name_changes(printed))
    removed = [change.path for change in changes if change.mode == _ABSENT]
    freed = {str(each).casefold() for path in removed for each in (Path(path), *Path(path).parents)}
    for change in changes:
        if change.path in changed:
            return change.path
        if change.old_mode != _ABSENT or change.mode == SUBMODULE:
            continue
        for candidate in (Path(change.path), *Path(change.path).parents[:-1]):
            target = top / candidate
            is_way = target.is_dir() and not target.is_symlink() and str(candidate) != change.path
            if os.path.lexists(target) and not is_way and str(candidate).casefold() not in freed:
                return str(candidate)
    return ""


def conflicts(top: Path, ours: str, theirs: str) -> list[str]:
    """Return the paths at which a merge of two commits is a conflict.

    None before git 2.38, and where it lacks contents: the merge itself finds them.
    """
    how = ("--write-tree", "--name-only", "--no-messages", "-z", ours, theirs)
    output = b""
    with suppress(GitError):
        output = ask_bytes(top_of(top), "merge-tree", *how, answers=(0, 1, USAGE_ERROR))
    return list(filter(None, os.fsdecode(output).split("\0")))[1:]


def unmerged(top: Path) -> list[str]:
    """Return the paths that a rebase under way has in conflict."""
    listed = ask(top_of(top), "diff", "--name-only", "--diff-filter=U", "-z")
    return list(filter(None, listed.split("\0")))


def is_submodule_away(folder: Path) -> bool:
    """Whether a folder is empty because it is a submodule that was not fetched. Raises GitError."""
    try:
        top = None if any(folder.iterdir()) else top_of(folder.parent)
    except OSError:  # it is not there, or no folder
        return False
    if top is None:
        return False
    path = os.path.relpath(os.path.realpath(folder), top)
    listed = ask(top, "--literal-pathspecs", "ls-files", "--stage", "-z", "--", path)
    return listed.startswith(f"{SUBMODULE} ")
