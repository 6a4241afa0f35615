"""The one door to git: it starts no program that a repository names.

Git runs what a repository's settings and attributes say, as soon as git is asked the wrong way. A
repository that somebody copied or unpacked brings its `.git/config` along, so every git that we start
gets a fixed list of settings that overrule the repository's, the overruling of those whose names are
free (see `instead`), its work tree by name, and no network outside `fetch` and `push`. A folder inside
the work tree that looks like a bare repository is not taken for one: its `config` would come with any
clone.
"""

from __future__ import annotations

import errno
import os
import re
import shlex
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from vault_index.errors import GitError
from vault_index.git.dotgit import top_of, tracks_nothing_named

_REPOSITORY = ("local", "worktree")  # the scopes of git's settings that come with a folder
SUBMODULE = "160000"  # the mode of a path that is a commit of another repository
_USAGE_ERROR = 129  # git's exit status for an option it does not know


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of git: `scope` is system, global, local, worktree or command."""

    scope: str
    key: str
    value: str

    @property
    def is_of_repository(self) -> bool:
        """Whether the repository's own files make it."""
        return self.scope in _REPOSITORY


MERGE_FILE = "git merge-file --marker-size=%L -L ours -L base -L theirs %A %O %B || exit 1"
# -P: in the work tree of others nothing is imported from the current folder
_OUR_DRIVER = (
    f"{shlex.quote(sys.executable)} -P -m vault_index merge-driver %A %B %O 2>/dev/null;"
    f" {MERGE_FILE}"
)
# What starts nothing, by the form of the key. Where "" would be started as a program, or taken for
# success, git's own program is named.
_INSTEAD = [
    (re.compile(form, re.IGNORECASE), value)
    for form, value in (
        (r"filter\..*\.(clean|smudge|process)", ""),
        (r"filter\..*\.required", "false"),
        (r"merge\.lessons\.driver", _OUR_DRIVER),
        (r"merge\.(?!lessons\.driver).*\.driver", "git merge-file %A %O %B"),
        (r"gpg\.(openpgp\.)?program", "gpg"),
        (r"gpg\.x509\.program", "gpgsm"),
        (r"gpg\.ssh\.program", "ssh-keygen"),
        (r"gpg\.ssh\.defaultkeycommand", ""),
        (r"core\.askpass", ""),
        (r"(core|sequence)\.editor", ":"),
        (r"core\.sshcommand", "ssh"),
        (r"protocol\.allow", "user"),
        (r"hook\..*\.enabled", "false"),
        (r"http\.(.*\.)?savecookies", "false"),
    )
]
_HOOK = re.compile(r"(hook\..*)\.command", re.IGNORECASE)
_FILTER = re.compile(r"(filter\..*)\.(clean|smudge|process)", re.IGNORECASE)
_HELPER = re.compile(r"credential\.(.*\.)?helper", re.IGNORECASE)
# No value starts nothing, or git takes the first value: a command that would use it is refused.
_REFUSED = re.compile(
    r"core\.(gitproxy|alternaterefscommand)|remote\..*\.(vcs|uploadpack|receivepack)",
    re.IGNORECASE,
)


def instead(settings: Sequence[Setting], *, filters: bool) -> list[tuple[str, str]]:
    """Return settings that overrule those with which a repository names a program.

    With `filters`, the filters of the user and the system stay; without, none runs: what only reads
    needs none.
    """
    own = {setting.key: setting.value for setting in settings if not setting.is_of_repository}
    overruled: list[tuple[str, str]] = []
    for key in dict.fromkeys(
        setting.key
        for setting in settings
        if setting.is_of_repository or (not filters and _FILTER.fullmatch(setting.key))
    ):
        driver, hook = _FILTER.fullmatch(key), _HOOK.fullmatch(key)
        wanted = {} if driver and not filters else own
        instead_of = (value for form, value in _INSTEAD if form.fullmatch(key))
        overruled += [(key, wanted.get(key, value)) for value in instead_of]
        if driver and key not in wanted:
            overruled.append((f"{driver[1]}.required", "false"))
        if hook:
            overruled.append((f"{hook[1]}.enabled", "false"))
    helpers = [setting for setting in settings if _HELPER.fullmatch(setting.key)]
    if any(setting.is_of_repository for setting in helpers):
        # an empty helper takes all back; then come the user's own
        overruled.append(("credential.helper", ""))
        overruled += [(each.key, each.value) for each in helpers if not each.is_of_repository]
    return overruled


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
_TELLS = ("config", "rev-parse")  # of settings and hooks as they are, and start nothing
# these read objects and names alone: no setting of theirs names a program
_PLAIN = {*_TELLS, *"branch cat-file check-ignore ls-files ls-tree merge-base rev-list".split()}
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
    import tempfile  # loads subprocess and more: `lessons list` needs none of it

    if top is None:
        return b""
    inside = ("-C", str(folder)) if folder else ()
    words = [*_TO_READ, *inside, *arguments]
    try:
        overrules = () if _verb(arguments) in _PLAIN else instead(_settings(top), filters=False)
        with tempfile.TemporaryFile() if stdin else nullcontext() as file:
            if stdin and file:
                file.write(os.fsencode(stdin))
                file.seek(0)
            status, output, _ = _run(top, top, words, overrules, (), file, READING_SECONDS)
    except OSError:
        return b""
    return output if status in answers else b""


def command(folder: Path, *arguments: str, check: bool = True) -> str:
    """Run git in a folder and return what it printed, without the last line end.

    For what changes something. Nobody is asked anything; no hook runs, but for the user's own at a
    `push`. Raises GitError with git's own words; without `check` a failure returns "".
    """
    verb, top = _verb(arguments), top_of(folder)
    try:
        settings = _settings(top) if top and verb not in _TELLS else []
        if top and verb in _NETWORK:
            _refuse_programs(verb, top, settings)
        overrules = instead(settings, filters=True)
        status, output, errors = _run(folder, top, arguments, overrules, settings)
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


def _refuse_programs(verb: str, top: Path, settings: Sequence[Setting]) -> None:
    named = (each.key for each in settings if each.is_of_repository)
    if key := next(filter(_REFUSED.fullmatch, named), ""):
        raise GitError(
            f"git {verb}: this repository's own settings name a program ({key})",
            f"git config --unset-all {key}",
        )
    if verb == "push" and not _hooks_of_user(settings):
        _, hook, _ = _run(top, top, ["rev-parse", "--git-path", "hooks/pre-push"])
        if os.access(top / _text(hook), os.X_OK):
            message = "this repository has a pre-push hook, and `lessons` runs none of its programs"
            raise GitError(f"git push: {message}", "git push")


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


def _settings(folder: Path) -> list[Setting]:
    """Return all settings of git, and where each is from; OSError where git tells none: before 2.26."""
    words = ["config", "--list", "-z", "--show-scope"]
    status, listed, errors = _run(folder, top_of(folder), words)
    if status:  # programs that they name would run
        old = "; lessons needs git 2.26 or newer" if status == _USAGE_ERROR else ""
        raise OSError(errors.partition("\n")[0] + old)
    fields = os.fsdecode(listed).split("\0")
    return [
        Setting(scope, *entry.partition("\n")[::2])
        for scope, entry in zip(fields[::2], fields[1::2], strict=False)
    ]


def _hooks_of_user(settings: Sequence[Setting]) -> str:
    of_user = [each for each in settings if not each.is_of_repository]
    hooks = {each.key: each.value for each in of_user}.get("core.hookspath", "")
    # a relative one is in the repository
    return hooks if hooks.startswith(("/", "~")) else ""


def _run(
    folder: Path,
    top: Path | None,
    arguments: Sequence[str],
    overrules: Sequence[tuple[str, str]] = (),
    settings: Sequence[Setting] = (),
    stdin: BinaryIO | None = None,
    seconds: float | None = None,
) -> tuple[int, bytes, str]:
    """Run git and return its status, its output and what it said on stderr.

    `settings` are those in which a `push` looks for the user's own hooks.

    GitPython is the way to the command only: its objects know no `.mailmap`, no encoding of a commit,
    no SHA-256 and no limit of time. Raises OSError without the folder or git.
    """
    verb = _verb(arguments)
    words = ["git", *ALWAYS, *arguments]
    if verb not in _TELLS:
        hooks = _hooks_of_user(settings) if verb == "push" else ""
        words[1:1] = ["-c", f"core.hooksPath={hooks or os.devnull}"]
    env = _environment(top, overrules)
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


def _environment(top: Path | None, overrules: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return what to add to our environment: git finds the work tree and never prompts.

    Settings that overrule others go here: a key may hold any character, `-c` splits at the first "=".
    """
    env = {"GIT_TERMINAL_PROMPT": "0", "GIT_EDITOR": ":", "LC_ALL": "C", "LANGUAGE": "C"}
    if top is not None:  # core.worktree may name any folder
        env["GIT_WORK_TREE"] = str(top)
    count = os.environ.get("GIT_CONFIG_COUNT", "")
    start = int(count) if count.isdigit() else 0
    for number, (key, value) in enumerate(overrules, start=start):
        env[f"GIT_CONFIG_KEY_{number}"], env[f"GIT_CONFIG_VALUE_{number}"] = key, value
    return env | ({"GIT_CONFIG_COUNT": str(start + len(overrules))} if overrules else {})


def is_tracked(folder: Path, name: str) -> bool:
    """Whether git has something in its index that is at, or below, a name in a folder.

    In any case of its letters: on some disks that is the same folder.
    """
    top = top_of(folder)
    if top is None or tracks_nothing_named(top, name):
        return False
    path = os.path.relpath(Path(os.path.realpath(folder), name), top)
    return bool(ask(top, "--no-literal-pathspecs", "--icase-pathspecs", "ls-files", "--", path))
