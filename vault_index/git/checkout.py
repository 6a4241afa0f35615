"""What is checked out here: the branch, what is not committed, what is staged, the settings."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from vault_index.errors import GitError, WriteError
from vault_index.git.plain import is_bare
from vault_index.git.run import Repo, ask, ask_bytes, command, opened, user_setting

RECENT_COMMITS = 10
_ASIDE = "lessons-commit-"  # a folder for the content of a commit; the process's id follows

CHANGED_FILES = 30
_NO_EDITOR = (":", "true", "/bin/true", "/usr/bin/true")
# in a submodule git starts another git, which goes by the submodule's own settings
_STATUS = ("status", "--porcelain", "-z", "--no-renames", "--ignore-submodules=all")


@dataclass(frozen=True, slots=True)
class Activity:
    """What a project is doing: enough to look for lessons before anyone has typed a prompt."""

    name: str
    branch: str = ""
    subjects: tuple[str, ...] = ()  # of the last ten commits, newest first
    changed: tuple[str, ...] = ()  # paths with uncommitted changes


@dataclass(frozen=True, slots=True)
class Worktree:
    """The state of the repository a vault lives in, for `lessons status`."""

    branch: str
    head: str
    uncommitted: tuple[str, ...] = field(default=())  # paths below the vault's folder


def reflog(folder: Path) -> Path | None:
    """Return the file that each commit, checkout and reset appends to; None without a repository."""
    with opened(folder) as repo:
        if repo is None:
            return None
        path = ask(repo, "rev-parse", "--git-path", "logs/HEAD")
        return repo.top / path if path else None


def activity(folder: Path) -> Activity:
    """Return what the project in a folder is doing: its name, branch, recent subjects, changed files."""
    with opened(folder) as repo:
        if repo is None:
            return Activity(folder.name)
        subjects = ask(repo, "log", f"-{RECENT_COMMITS}", "--format=%s").splitlines()
        status = ask(repo, *_STATUS).split("\0")
        return Activity(
            name=repo.top.name,
            branch=ask(repo, "branch", "--show-current"),
            subjects=tuple(subjects),
            changed=tuple(line[3:] for line in status if len(line) > 3)[:CHANGED_FILES],
        )


def worktree(folder: Path) -> Worktree | None:
    """Return branch, commit and uncommitted files of the repository around a folder, if there is one."""
    with opened(folder) as repo:
        if repo is None:
            return None
        status = ask(repo, *_STATUS, "--untracked-files=all", "--", str(folder))
        return Worktree(
            branch=ask(repo, "branch", "--show-current") or "detached",
            head=ask(repo, "rev-parse", "--short", "-q", "--verify", "HEAD"),
            uncommitted=tuple(line[3:] for line in status.split("\0") if len(line) > 3),
        )


def top(folder: Path) -> Path:
    """Return the top folder of the repository around a folder. Raises GitError without one."""
    with opened(folder) as repo:
        if repo is None:
            raise GitError(f"{folder} is in no git repository", "git init, or lessons init")
        return repo.top


def setting(folder: Path, key: str) -> str:
    """Return a setting of git, "" where there is none."""
    return command(folder, "config", "--get", key, check=False)


def editor(folder: Path) -> str:
    """Return the command of the editor that git opens for this user; "" where none is named.

    A `GIT_EDITOR` that does nothing is not an editor: programs that run git unattended set it.
    """
    named = os.environ.get("GIT_EDITOR", "").strip()
    return (named if named not in _NO_EDITOR else "") or user_setting(folder, "core.editor").strip()


def configure(folder: Path, key: str, value: str) -> bool:
    """Set a setting of the repository. False if it was so already. Raises GitError."""
    if setting(folder, key) == value:
        return False
    command(folder, "config", "--local", key, value)
    return True


def current_branch(folder: Path) -> str:
    """Return the branch that is checked out, "" for none."""
    return command(folder, "branch", "--show-current", check=False)


def git_path(folder: Path, name: str) -> Path:
    """Return where git keeps a file of its own, such as MERGE_HEAD, in this worktree."""
    return folder / command(folder, "rev-parse", "--git-path", name)


def active_hooks(folder: Path) -> list[str]:
    """List the hooks in the repository's own hooks folder that git would run."""
    hooks = git_path(folder, "hooks")
    listed = sorted(hooks.iterdir()) if hooks.is_dir() else []
    return [str(hook) for hook in listed if hook.suffix != ".sample" and os.access(hook, os.X_OK)]


def files(folder: Path) -> list[str]:
    """Return the files below a folder that git tracks, relative to it.

    Those that it does not track are not asked for: git reads each `.gitignore` then, and would wait
    for ever for a pipe of that name.
    """
    with opened(folder) as repo:
        if repo is None:
            return []
        listed = ask(repo, "-C", str(folder), "ls-files", "-z").split("\0")
        return sorted({name for name in listed if name})


def staged(folder: Path) -> list[str]:
    """List files below a folder that the next commit adds or changes, relative to the folder."""
    with opened(folder) as repo:
        if repo is None:
            return []
        prefix = ask(repo, "-C", str(folder), "rev-parse", "--show-prefix")
        names = ask(
            repo,
            *("diff", "--cached", "--name-only", "-z", "--no-renames", "--no-ext-diff"),
            *("--diff-filter=AMT", f"--relative={prefix}", "--", prefix or "."),
        )
        return [name for name in names.split("\0") if name]


def staged_content(folder: Path, path: str, most: int) -> bytes:
    """Return a file of a folder as the next commit will have it; b"" if it is not in the index.

    For a file of more than `most` bytes: `most` + 1 zeros.
    """
    with opened(folder) as repo:
        if repo is None:
            return b""
        prefix = ask(repo, "-C", str(folder), "rev-parse", "--show-prefix")
        size = ask(repo, "cat-file", "-s", f":{prefix}{path}")
        if size.isdigit() and int(size) > most:
            return bytes(most + 1)
        return ask_bytes(repo, "cat-file", "blob", f":{prefix}{path}")


def root_commit(folder: Path) -> str:
    """Return the first commit of the history here, of several the smallest; "" where there is none."""
    with opened(folder) as repo:
        if repo is None:
            return ""
        return min(ask(repo, "rev-list", "--max-parents=0", "HEAD").split(), default="")


def ignored(top: Path, paths: Collection[str]) -> set[str]:
    """Return which paths, relative to the top of a repository, git does not track and ignores."""
    with opened(top) as repo:
        return _ignored(repo, sorted(paths)) if repo else set()


def _ignored(repo: Repo, paths: Sequence[str]) -> set[str]:
    """Ask git about many paths at once, and about halves if it refuses one of them."""
    import tempfile  # loads subprocess and more: `lessons list` needs none of it

    if not paths:
        return set()
    with tempfile.TemporaryFile() as names:
        names.write("".join(f"./{path}\0" for path in paths).encode("utf-8", "surrogateescape"))
        names.seek(0)
        # each path is answered as <source> <line> <pattern> <path>, without a source if not ignored
        told = ask_bytes(
            repo,
            "--no-literal-pathspecs",  # which it knows nothing of
            *("check-ignore", "--stdin", "-z", "--verbose", "--non-matching"),
            stdin=names,
            answers=(0, 1),  # 1: none of them is
        )
    if not told:
        middle = len(paths) // 2
        return _ignored(repo, paths[:middle]) | _ignored(repo, paths[middle:]) if middle else set()
    answers = os.fsdecode(told).split("\0")
    rules = zip(answers[0::4], answers[2::4], answers[3::4], strict=False)
    there = (path for source, rule, path in rules if source and not rule.startswith("!"))
    return {path.removeprefix("./") for path in there}


def commit_file(folder: Path, path: str, data: bytes, message: Sequence[str]) -> bool:
    """Commit one file with a content that the work tree need not have yet.

    Git takes it from a work tree aside, so at no moment a kill leaves it staged and not committed.
    `path` is relative to the folder, `message` the options of `git commit` for it. Return False if
    the commit that is checked out has the file so. Raises GitError, with nothing staged.
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
            return _commit_from(above, aside, inside, message)
    except OSError as error:
        raise GitError(f"git commit: {error.strerror or error}", "free some space") from None


def _commit_from(above: Path, aside: str, inside: str, message: Sequence[str]) -> bool:
    words = (f"--work-tree={aside}", "--no-optional-locks", "--literal-pathspecs")
    is_new = not command(above, *words, "ls-files", "--", inside)
    if is_new:  # a commit of a path alone asks for one that git knows
        command(above, *words, "add", "--intent-to-add", "--", inside)
    try:
        if not command(above, *words, "status", "--porcelain", "--", inside):
            return False
        command(above, *words, "commit", "--quiet", *message, "--", inside)
    except GitError:
        if is_new:
            command(above, "update-index", "--force-remove", "--", inside, check=False)
        raise
    return True


def _remove_asides() -> None:
    """Remove the work trees aside of processes of this user that were killed. Raises OSError."""
    import shutil
    import tempfile

    for folder in Path(tempfile.gettempdir()).glob(f"{_ASIDE}*-*"):
        pid = folder.name.removeprefix(_ASIDE).partition("-")[0]
        if pid.isdigit() and not _is_alive(int(pid)) and folder.lstat().st_uid == os.geteuid():
            shutil.rmtree(folder, ignore_errors=True)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True


def start_repository(folder: Path) -> bool:
    """Make a folder a git repository unless it is inside one. Tells whether one was made.

    Raises WriteError, and GitError for a bare repository: it has no place for files.
    """
    with opened(folder) as repo:
        if repo is not None:
            return False
    if is_bare(folder):
        raise GitError(f"{folder} is a bare repository", "clone it, and lessons init in the clone")
    try:
        command(folder, "init", "--quiet")
    except GitError as error:
        raise WriteError(f"{folder}: {error.message}", error.hint) from None
    return True
