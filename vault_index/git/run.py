"""The one door to git: it starts no program that a repository names.

Whoever opens a repository runs what its settings and attributes say, as soon as git is asked the wrong
way. So every git that we start gets a fixed list of settings that overrule the repository's, the
overruling of those whose names are free (see `programs`), its work tree by name, and no
network outside `fetch` and `push`. A folder inside the work tree that looks like a bare repository is
none: its `config` would come with any clone.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

from vault_index.errors import GitError
from vault_index.git import programs
from vault_index.git.plain import top_of

# On the command line, where it overrules every file.
ALWAYS = (
    *("--no-pager", "-c", "core.quotePath=false", "-c", "core.fsmonitor=false"),
    *("-c", "log.showSignature=false", "-c", "safe.bareRepository=explicit"),
    *("-c", "submodule.recurse=false", "-c", "fetch.recurseSubmodules=false"),
    *("-c", "push.recurseSubmodules=no"),
)
READING_SECONDS = 60.0  # git that only reads and takes longer waits for a pipe in a file's place
_TO_READ = ("--no-optional-locks", "--literal-pathspecs")
_NETWORK = ("fetch", "push")
_TELLS = ("config", "rev-parse")  # of settings and hooks as they are, and start nothing
# of a git that runs us as its hook: git itself finds the repository of the folder that we name
_OF_A_HOOK = ("GIT_DIR", "GIT_COMMON_DIR", "GIT_WORK_TREE", "GIT_NAMESPACE", "GIT_PREFIX")


@dataclass(frozen=True, slots=True)
class Repo:
    """A repository with a work tree. `top` is the folder that holds `.git`.

    `overrules` are settings in the place of those with which it names a program.
    """

    top: Path
    overrules: Sequence[tuple[str, str]]


@contextmanager
def opened(folder: Path) -> Iterator[Repo | None]:
    """Yield the repository around a folder; None when there is none or no git."""
    top = top_of(folder)
    try:
        settings = _settings(top) if top else []
    except OSError:
        top = None
    yield Repo(top, programs.instead(settings, filters=False)) if top else None


def ask(repo: Repo, *arguments: str) -> str:
    """Run a git command that only reads; "" when it fails (no commit yet, dubious ownership...)."""
    return _text(ask_bytes(repo, *arguments))


def ask_bytes(
    repo: Repo, *arguments: str, stdin: BinaryIO | None = None, answers: Sequence[int] = (0,)
) -> bytes:
    """Run a git command that only reads, `stdin` too; b"" when it fails.

    `answers` are the exit statuses that are none of a failure.
    """
    try:
        done = _run(
            repo.top,
            repo.top,
            [*_TO_READ, *arguments],
            repo.overrules,
            stdin=stdin,
            seconds=READING_SECONDS,
        )
    except OSError:
        return b""
    return done.stdout if done.status in answers else b""


def has_in_index(folder: Path, name: str) -> bool:
    """Whether git has something in its index that is at, or below, a name in a folder.

    In any case of its letters: on some disks that is the same folder.
    """
    top = top_of(folder)
    if top is None:
        return False
    path = os.path.relpath(Path(os.path.realpath(folder), name), top)
    try:
        done = _run(top, top, ["--icase-pathspecs", "ls-files", "-z", "--", path])
    except OSError:
        return False
    return done.status == 0 and bool(done.stdout)


def command(folder: Path, *arguments: str, check: bool = True) -> str:
    """Run git in a folder and return what it printed, without the last line end.

    For what changes something. Nobody is asked anything; no hook runs, but for the user's own at a
    `push`. Raises GitError with git's own words; without `check` a failure returns "".
    """
    verb = _verb(arguments)
    top = top_of(folder)
    try:
        settings = _settings(top) if top else []
    except OSError:  # it will be said below
        settings = []
    key = programs.refused(settings) if verb in _NETWORK else ""
    if key:
        raise GitError(
            f"git {verb}: this repository's own settings name a program ({key})",
            f"git config --unset-all {key}",
        )
    if verb == "push" and top and not _hooks_of_user(settings) and _has_hook(top, "pre-push"):
        raise GitError(
            "git push: this repository has a pre-push hook, and `lessons` runs none of its programs",
            "git push",
        )
    overrules = () if verb in _TELLS else programs.instead(settings, filters=True)
    try:
        done = _run(folder, top, arguments, overrules, settings)
    except OSError as error:
        if isinstance(error, FileNotFoundError) and folder.is_dir():
            raise GitError("there is no git command here", "install git") from None
        if not check:
            return ""
        raise GitError(f"git {verb}: {error.strerror or error}") from None
    if done.status == 0:
        return _text(done.stdout)
    if not check:
        return ""
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    messages = [line for line in lines if not line.startswith("hint:")]
    hint = "free some space" if any(map(is_full, messages)) else ""
    raise GitError(f"git {verb}: {'; '.join(messages[:3]) or 'failed'}", hint)


def is_full(message: str) -> bool:
    """Whether git says that the disk is full."""
    return os.strerror(errno.ENOSPC) in message or "Out of diskspace" in message


def user_setting(folder: Path, key: str) -> str:
    """Return a setting that the user or the system made, not the repository; "" without one."""
    try:
        return programs.of_user(_settings(top_of(folder) or folder), key)
    except OSError:
        return ""


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


def _settings(folder: Path) -> list[programs.Setting]:
    """Return all settings of git, and where each is from; git 2.26 or newer tells."""
    done = _run(folder, top_of(folder), ["config", "--list", "-z", "--show-scope"])
    return programs.parse(os.fsdecode(done.stdout))


def _hooks_of_user(settings: Sequence[programs.Setting]) -> str:
    """Return the folder of hooks that the user chose for all repositories, or ""."""
    hooks = programs.of_user(settings, "core.hookspath")
    return (
        hooks if hooks and Path(hooks).expanduser().is_absolute() else ""
    )  # else in the repository


def _has_hook(top: Path, name: str) -> bool:
    done = _run(top, top, ["rev-parse", "--git-path", f"hooks/{name}"])
    return os.access(top / _text(done.stdout), os.X_OK)


class _Ended(NamedTuple):
    """How a git command ended, and what it printed."""

    status: int
    stdout: bytes
    stderr: str


def _run(
    folder: Path,
    top: Path | None,
    arguments: Sequence[str],
    overrules: Sequence[tuple[str, str]] = (),
    settings: Sequence[programs.Setting] = (),
    stdin: BinaryIO | None = None,
    seconds: float | None = None,
) -> _Ended:
    """Start git. `settings` are those in which a `fetch` or `push` looks for the user's own.

    GitPython is the way to the command only: no object database of it is opened, so no `git cat-file`
    child is left behind. Raises OSError without the folder or git.
    """
    verb = _verb(arguments)
    words = ["git", *ALWAYS, *arguments]
    if verb not in _TELLS:
        hooks = _hooks_of_user(settings) if verb == "push" else ""
        words[1:1] = ["-c", f"core.hooksPath={hooks or os.devnull}"]
    env = _environment(top, overrules)
    if verb in _NETWORK:
        ext = programs.of_user(settings, "protocol.ext.allow") or "never"
        words[1:1] = ["-c", f"protocol.ext.allow={ext}"]
    else:  # a repository may say that it lacks objects, and name who has them
        env |= {"GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1"}
    if not os.access(folder, os.X_OK):  # GitPython would go to the current folder instead
        raise FileNotFoundError(str(folder))
    try:
        import git  # 75 ms; it looks for the git command at once
    except ImportError as error:
        raise FileNotFoundError(str(error)) from None
    try:
        ended = git.cmd.Git(folder).execute(
            [*_without_hook_variables(top, env), *words],
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
    return _Ended(*ended)


def _without_hook_variables(top: Path | None, env: Mapping[str, str]) -> list[str]:
    """Return the words before `git` that take away what the git of a hook set for that hook."""
    names = [name for name in _OF_A_HOOK if top and name in os.environ and name not in env]
    return ["env", *(word for name in names for word in ("-u", name))] if names else []


def _environment(top: Path | None, overrules: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return what to add to our environment: git finds the work tree and never prompts.

    What overrules a setting goes here: a key may hold any character, `-c` splits at the first "=".
    """
    env = {"GIT_TERMINAL_PROMPT": "0", "GIT_EDITOR": ":", "LC_ALL": "C", "LANGUAGE": "C"}
    if top is not None:  # core.worktree may name any folder
        env["GIT_WORK_TREE"] = str(top)
    count = os.environ.get("GIT_CONFIG_COUNT", "")
    start = int(count) if count.isdigit() else 0
    for number, (key, value) in enumerate(overrules, start=start):
        env[f"GIT_CONFIG_KEY_{number}"], env[f"GIT_CONFIG_VALUE_{number}"] = key, value
    return env | ({"GIT_CONFIG_COUNT": str(start + len(overrules))} if overrules else {})
