"""Running git: to read, and to change something.

GitPython is the way to the `git` command only: no object database is opened, so no `git cat-file`
child is left behind.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from vault_index.errors import GitError

if TYPE_CHECKING:
    from git import Repo

# a repository that somebody unpacked may name programs in its configuration
READ_ONLY = (
    *("git", "--no-optional-locks", "--literal-pathspecs", "-c", "core.quotePath=false"),
    *("-c", "core.fsmonitor=false", "-c", "log.showSignature=false"),
)


@contextmanager
def opened(folder: Path) -> Iterator[Repo | None]:
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
    if "GIT_DIR" in os.environ and repo.working_tree_dir:
        # git sets it for hooks in a linked worktree, and takes every folder for the top one then
        repo.git.update_environment(
            GIT_DIR=str(repo.git_dir), GIT_WORK_TREE=str(repo.working_tree_dir)
        )
    try:
        yield repo if repo.working_tree_dir else None
    finally:
        repo.close()


def ask(repo: Repo, *arguments: str) -> str:
    """Run a git command that only reads; "" when it fails (no commit yet, dubious ownership...)."""
    import git

    try:
        return str(repo.git.execute([*READ_ONLY, *arguments], strip_newline_in_stdout=True))
    except (git.GitCommandError, git.GitCommandNotFound, OSError):
        return ""


def ask_bytes(repo: Repo, *arguments: str, stdin: BinaryIO | None = None) -> bytes:
    """Run a git command that only reads; b"" when it fails. `stdin` is an open file."""
    import git

    try:
        out = repo.git.execute(
            [*READ_ONLY, *arguments],
            istream=stdin,
            stdout_as_string=False,
            strip_newline_in_stdout=False,
        )
    except (git.GitCommandError, git.GitCommandNotFound, OSError):
        return b""
    return out if isinstance(out, bytes) else str(out).encode()


def command(folder: Path, *arguments: str, check: bool = True) -> str:
    """Run git in a folder and give what it printed, without the last line end.

    For what changes something: our own hooks and commands may run, nobody is asked anything.
    Raises GitError with git's own words; without `check` a failure gives "".
    """
    import git

    runner = git.cmd.Git(folder)
    quiet = {"GIT_TERMINAL_PROMPT": "0", "GIT_EDITOR": "true", "LC_ALL": "C"}
    try:
        return str(runner.execute(["git", *arguments], env=quiet, strip_newline_in_stdout=True))
    except git.GitCommandNotFound:
        raise GitError("there is no git command here", "install git") from None
    except (git.GitCommandError, OSError) as error:
        if not check:
            return ""
        said = str(getattr(error, "stderr", "") or error).strip().strip("'").removeprefix("stderr:")
        lines = [line.strip(" '") for line in said.splitlines() if line.strip(" '")]
        told = [line for line in lines if not line.startswith("hint:")]
        verb = next(word for word in arguments if not word.startswith(("-", "core.")))
        raise GitError(f"git {verb}: {'; '.join(told[:3]) or 'failed'}") from None
