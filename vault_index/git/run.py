"""The one door to git, which is as safe as git itself: a clone brings no settings and no hooks.

Beyond that each git that we start gets what is an option or a variable: its work tree by name, no
hooks but those of a `push`, no program that watches files, no network outside `fetch` and `push`, no
question to anybody. A folder inside the work tree that looks like a bare repository is not taken for
one: its `config` would come with any clone.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from vault_index.errors import GitError
from vault_index.git.dotgit import head_of, top_of, tracks_nothing_named

SUBMODULE = "160000"  # the mode of a path that is a commit of another repository
# On the command line, where it overrules every file.
ALWAYS = (
    *("--no-pager", "-c", "core.quotePath=false", "-c", "core.fsmonitor=false"),
    *("-c", "log.showSignature=false", "-c", "safe.bareRepository=explicit"),
    *("-c", "submodule.recurse=false", "-c", "fetch.recurseSubmodules=false"),
    *("-c", "push.recurseSubmodules=no", "-c", "gc.auto=0", "-c", "maintenance.auto=false"),
    *("-c", "protocol.ext.allow=never"),
)
READING_SECONDS = 60.0  # git that only reads and takes longer waits for a pipe in a file's place
_TO_READ = ("--no-optional-locks", "--literal-pathspecs")
_NETWORK = ("fetch", "push")
_WITH_HOOKS = ("push", "config", "rev-parse")  # the last two tell where hooks are, and start none
# of a git that runs us as its hook: git itself finds the repository of the folder that we name
_OF_A_HOOK = ("GIT_DIR", "GIT_COMMON_DIR", "GIT_WORK_TREE", "GIT_NAMESPACE", "GIT_PREFIX")


def ask(top: Path | None, *arguments: str, folder: Path | None = None) -> str:
    """Run a git command that only reads, in a folder or else at the top of a repository.

    "" when it fails (no repository, no commit yet, dubious ownership...).
    """
    return _text(ask_bytes(top, *arguments, folder=folder))


def ask_bytes(
    top: Path | None,
    *arguments: str,
    folder: Path | None = None,
    stdin: str | None = None,
    answers: Sequence[int] = (0,),
) -> bytes:
    """Run a git command that only reads, as `ask` does, and its standard input; b"" when it fails.

    `answers` are the exit statuses that mean no failure.
    """
    if top is None:
        return b""
    inside = ("-C", str(folder)) if folder else ()
    try:
        with _file_of(stdin) as opened:
            words = [*_TO_READ, *inside, *arguments]
            status, output, _ = _run(top, top, words, opened, READING_SECONDS)
    except OSError:
        return b""
    return output if status in answers else b""


@contextmanager
def _file_of(text: str | None) -> Iterator[BinaryIO | None]:
    if text is None:
        yield None
        return
    import tempfile  # loads subprocess and more: `lessons list` needs none of it

    with tempfile.TemporaryFile() as file:
        file.write(text.encode("utf-8", "surrogateescape"))
        file.seek(0)
        yield file


def command(folder: Path, *arguments: str, check: bool = True) -> str:
    """Run git in a folder and return what it printed, without the last line end.

    For what changes something. Nobody is asked anything. Raises GitError with git's own words; without
    `check` a failure returns "".
    """
    verb = _verb(arguments)
    try:
        status, output, errors = _run(folder, top_of(folder), arguments)
    except OSError as error:
        if isinstance(error, FileNotFoundError) and folder.is_dir():
            raise GitError("there is no git command here", "install git") from None
        if not check:
            return ""
        raise GitError(f"git {verb}: {error.strerror or error}") from None
    if status == 0:
        return _text(output)
    if not check:
        return ""
    lines = filter(None, map(str.strip, errors.splitlines()))
    messages = [line for line in lines if not line.startswith("hint:")]
    hint = "free some space" if any(map(is_full, messages)) else ""
    raise GitError(f"git {verb}: {'; '.join(messages[:3]) or 'failed'}", hint)


def is_full(message: str) -> bool:
    """Whether git says that the disk is full."""
    return os.strerror(errno.ENOSPC) in message or "Out of diskspace" in message


def author_name(folder: Path) -> str:
    """Return the name that commits of the user have in a repository; "" without one."""
    if name := os.environ.get("GIT_AUTHOR_NAME", "").strip():  # git asks it first, too
        return name
    keys = ("author.name", "user.name")
    values = (command(folder, "config", "--get", key, check=False) for key in keys)
    return next(filter(None, values), "")


def _text(output: bytes) -> str:
    return os.fsdecode(output[:-1] if output.endswith(b"\n") else output)


def _verb(arguments: Sequence[str]) -> str:
    words = iter(arguments)
    for word in words:
        if word in ("-c", "-C"):
            next(words, "")
        elif not word.startswith("-"):
            return word
    return ""


def _run(
    folder: Path,
    top: Path | None,
    arguments: Sequence[str],
    stdin: BinaryIO | None = None,
    seconds: float | None = None,
) -> tuple[int, bytes, str]:
    """Run git and return its status, its output and what it said on stderr.

    GitPython only finds the command, so no `git cat-file` child is left behind. Raises OSError without
    the folder or git.
    """
    verb = _verb(arguments)
    words = ["git", *ALWAYS, *arguments]
    if verb not in _WITH_HOOKS:
        words[1:1] = ["-c", f"core.hooksPath={os.devnull}"]
    env = {"GIT_TERMINAL_PROMPT": "0", "GIT_EDITOR": ":", "LC_ALL": "C", "LANGUAGE": "C"}
    if top is not None:  # core.worktree may name any folder
        env["GIT_WORK_TREE"] = str(top)
    if verb not in _NETWORK:  # a repository may say that it lacks objects, and name who has them
        env |= {"GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1"}
    lent = [name for name in _OF_A_HOOK if top and name in os.environ and name not in env]
    if lent:
        words[:0] = ["env", *(word for name in lent for word in ("-u", name))]
    if not os.access(folder, os.X_OK):  # GitPython would go to the current folder instead
        raise FileNotFoundError(str(folder))
    try:
        import git  # 75 ms; it looks for the git command at once
    except ImportError as error:
        raise FileNotFoundError(str(error)) from None
    try:
        ended: tuple[int, bytes, str] = git.cmd.Git(folder).execute(
            words,
            istream=stdin,
            env=env,
            kill_after_timeout=seconds,
            with_extended_output=True,
            with_exceptions=False,
            stdout_as_string=False,
            strip_newline_in_stdout=False,
        )
    except git.GitCommandNotFound as error:
        raise FileNotFoundError(str(error)) from None
    return ended


# Questions that plain files answer where that is certain, and git, which takes longer, elsewhere.


def is_tracked(folder: Path, name: str) -> bool:
    """Whether git has something in its index that is at, or below, a name in a folder.

    In any case of its letters: on some disks that is the same folder.
    """
    top = top_of(folder)
    if top is None or tracks_nothing_named(top, name):
        return False
    path = os.path.relpath(Path(os.path.realpath(folder), name), top)
    try:
        status, listed, _ = _run(top, top, ["--icase-pathspecs", "ls-files", "-z", "--", path])
    except OSError:
        return False
    return status == 0 and bool(listed)


def head(folder: Path) -> str | None:
    """Return the commit that is checked out (40 hexadecimal digits); None without one."""
    top = top_of(folder)
    commit = head_of(top) if top else None
    return commit or ask(top, "rev-parse", "--verify", "-q", "HEAD") or None
