"""What git knows: who wrote each lesson and when, and what a project is doing.

GitPython lives here, as the way to the `git` command only: no object database is opened, so no
`git cat-file` child is left behind. A folder that is no repository, or one git refuses to read, is
an ordinary case: there is then nothing to know.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from vault_index.errors import WriteError

if TYPE_CHECKING:
    from git import Repo

RECENT_COMMITS = 10
CHANGED_FILES = 30


@dataclass(frozen=True, slots=True)
class Provenance:
    """Who last changed a file, and its first and last commit (ISO 8601 dates of the author)."""

    author: str
    first: str
    last: str


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


def head(folder: Path) -> str | None:
    """Give the commit that is checked out (40 hexadecimal digits); None without one."""
    with _opened(folder) as repo:
        return _ask(repo, "rev-parse", "--verify", "-q", "HEAD") or None if repo else None


def reflog(folder: Path) -> Path | None:
    """Give the file that each commit, checkout and reset appends to; None without a repository."""
    with _opened(folder) as repo:
        if repo is None:
            return None
        path = _ask(repo, "rev-parse", "--git-path", "logs/HEAD")
        return Path(repo.working_tree_dir or folder, path) if path else None


def history(folder: Path, since: str | None = None) -> dict[str, Provenance] | None:
    """Walk `git log` once and give the provenance of each committed file below a folder.

    Keys are paths relative to the folder, renames followed. With `since`, only files that commits
    after it touched are given, their `first` being the first after it; None if `since` is not an
    ancestor of HEAD, so that a whole walk is needed.
    """
    with _opened(folder) as repo:
        if repo is None:
            return {}
        if since and _ask(repo, "merge-base", since, "HEAD") != since:
            return None
        prefix = _ask(repo, "-C", str(folder), "rev-parse", "--show-prefix")
        log = _ask(
            repo,
            *(
                "log",
                "-M",
                "--name-status",
                "-z",
                f"--relative={prefix}",
                "--format=%x01%aN%x02%aI",
            ),
            *([f"{since}..HEAD"] if since else []),
            *("--", prefix or "."),
        )
    return _provenance(log)


def activity(folder: Path) -> Activity:
    """Tell what the project in a folder is doing: its name, branch, recent subjects, changed files."""
    with _opened(folder) as repo:
        if repo is None:
            return Activity(folder.name)
        top = Path(repo.working_tree_dir or folder)
        subjects = _ask(repo, "log", f"-{RECENT_COMMITS}", "--format=%s").splitlines()
        status = _ask(repo, "status", "--porcelain", "-z", "--no-renames").split("\0")
        return Activity(
            name=top.name,
            branch=_ask(repo, "branch", "--show-current"),
            subjects=tuple(subjects),
            changed=tuple(line[3:] for line in status if len(line) > 3)[:CHANGED_FILES],
        )


def worktree(folder: Path) -> Worktree | None:
    """Give branch, commit and uncommitted files of the repository around a folder, if there is one."""
    with _opened(folder) as repo:
        if repo is None:
            return None
        status = _ask(repo, "status", "--porcelain", "-z", "--no-renames", "--", str(folder))
        return Worktree(
            branch=_ask(repo, "branch", "--show-current") or "detached",
            head=_ask(repo, "rev-parse", "--short", "-q", "--verify", "HEAD"),
            uncommitted=tuple(line[3:] for line in status.split("\0") if len(line) > 3),
        )


def start_repository(folder: Path) -> bool:
    """Make a folder a git repository unless it is inside one. Tells whether one was made."""
    import git

    with _opened(folder) as repo:
        if repo is not None:
            return False
    try:
        git.Repo.init(folder).close()
    except (git.GitCommandError, OSError) as error:
        raise WriteError(f"{folder}: git init failed: {error}") from None
    return True


@contextmanager
def _opened(folder: Path) -> Iterator[Repo | None]:
    """Open the repository around a folder; None when there is none or no git."""
    try:
        import git  # 75 ms, and it fails where there is no git command
    except ImportError:
        yield None
        return
    try:
        repo = git.Repo(folder, search_parent_directories=True)
    except (git.InvalidGitRepositoryError, git.NoSuchPathError, OSError):
        yield None
        return
    try:
        yield repo if repo.working_tree_dir else None
    finally:
        repo.close()


def _ask(repo: Repo, *arguments: str) -> str:
    """Run a git command that only reads; "" when it fails (no commit yet, dubious ownership...)."""
    import git

    command = ["git", "--no-optional-locks", "-c", "core.quotePath=false", *arguments]
    try:
        return str(repo.git.execute(command, strip_newline_in_stdout=True))
    except (git.GitCommandError, git.GitCommandNotFound, OSError):
        return ""


def _provenance(log: str) -> dict[str, Provenance]:
    """Read the output of `git log --name-status -z`, newest commit first."""
    found: dict[str, Provenance] = {}
    today: dict[str, str] = {}  # a path's name back then -> its name now
    author = when = ""
    fields = iter(log.split("\0"))
    for entry in fields:
        text = entry.lstrip("\n")
        if text.startswith("\x01"):
            author, _, when = text[1:].partition("\x02")
            continue
        if not text:
            continue
        path = next(fields, "")
        if text[0] in "RC":
            older, path = path, next(fields, "")
            if text[0] == "R":
                today[older] = today.get(path, path)
        name = today.get(path, path)
        newest = found.get(name, Provenance(author, when, when))
        found[name] = Provenance(newest.author, when, newest.last)
    return found
