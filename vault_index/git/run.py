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
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from vault_index.errors import (
    BrokenRepositoryError,
    GitError,
    GitRefusedError,
    GitTimeoutError,
    NoCommitError,
    NoGitError,
    NoRepositoryError,
    hint_for,
)
from vault_index.git.dotgit import top_of, tracks_nothing_named

_REPOSITORY = ("local", "worktree")  # the scopes of git's settings that come with a folder
SUBMODULE = "160000"  # the mode of a path that is a commit of another repository
NOT_THERE = 1  # git's exit status for a setting, or a name, that is not there
USAGE_ERROR = 129  # git's exit status for an option it does not know


@dataclass(frozen=True, slots=True)
class GitSetting:
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


def instead(settings: Sequence[GitSetting], *, filters: bool) -> list[tuple[str, str]]:
    """Return settings that overrule those with which a repository names a program.

    With `filters`, the filters of the user and the system stay; without, none runs: what only reads
    needs none.
    """
    of_user = {setting.key: setting.value for setting in settings if not setting.is_of_repository}
    overruled: list[tuple[str, str]] = []
    for key in dict.fromkeys(
        setting.key
        for setting in settings
        if setting.is_of_repository or (not filters and _FILTER.fullmatch(setting.key))
    ):
        driver, hook = _FILTER.fullmatch(key), _HOOK.fullmatch(key)
        wanted = {} if driver and not filters else of_user
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


def ask(
    top: Path | None, *arguments: str, folder: Path | None = None, answers: Sequence[int] = (0,)
) -> str:
    """Run a git command that only reads, in a folder or else at the top of a repository.

    "" means that git printed nothing, or that there is no repository (`top` is None), of which nothing
    is to be known. `answers` are the exit statuses that are answers. Raises GitError for any other: of
    the subclass that says why, NoCommitError where nothing is committed yet.
    """
    return _text(ask_bytes(top, *arguments, folder=folder, answers=answers))


def ask_history(top: Path | None, *arguments: str, **how: Any) -> str:
    """Ask git as `ask` does, about commits of HEAD: "" where nothing is committed yet."""
    try:
        return ask(top, *arguments, **how)
    except NoCommitError:
        return ""


def ask_bytes(
    top: Path | None,
    *arguments: str,
    folder: Path | None = None,
    stdin: str | None = None,
    answers: Sequence[int] = (0,),
) -> bytes:
    """Run a git command that only reads, as `ask` does, with a text as its standard input."""
    import tempfile  # loads subprocess and more: `lessons list` needs none of it

    if top is None:
        return b""
    verb = _verb(arguments)
    inside = ("-C", str(folder)) if folder else ()
    words = [*_TO_READ, *inside, *arguments]
    try:
        overrules = () if verb in _PLAIN else instead(_settings(top), filters=False)
        with tempfile.TemporaryFile() if stdin else nullcontext() as file:
            if stdin and file:
                file.write(os.fsencode(stdin))
                file.seek(0)
            status, output, errors = _run(top, top, words, overrules, (), file, READING_SECONDS)
    except OSError as error:
        raise _not_run(verb, top, error) from None
    if status in answers:
        return output
    raise _reason(verb, top, errors) or _reason_of_all(top, errors) or _failure(verb, errors)


def command(folder: Path, *arguments: str, answers: Sequence[int] = (0,)) -> str:
    """Run git in a folder and return its output, without the last line end.

    For what changes something. Nobody is asked anything; no hook runs, but for the user's own at a
    `push`. `answers` are the exit statuses that are answers; raises GitError, with git's own words, for
    any other.
    """
    verb, top = _verb(arguments), top_of(folder)
    try:
        settings = _settings(top) if top and verb not in _TELLS else []
        if top and verb in _NETWORK:
            _refuse_programs(verb, top, settings)
        overrules = instead(settings, filters=True)
        seconds = READING_SECONDS if verb in _TELLS else None
        status, output, errors = _run(folder, top, arguments, overrules, settings, seconds=seconds)
    except OSError as error:
        raise _not_run(verb, folder, error) from None
    if status in answers:
        return _text(output)
    raise _reason(verb, top or folder, errors) or _failure(verb, errors)


def check_readable(folder: Path) -> None:
    """Raise GitError if git does not read the repository around a folder: it hides its settings then."""
    if top := top_of(folder):
        ask(top, "rev-parse", "--git-dir")


_TIMEOUT = "Timeout: the command "  # as GitPython says it
_EXCEPTION = re.compile(r"(?m)^\s*(git config --global --add safe\.directory .+)$")
_DAMAGE = re.compile(
    r"bad (tree |blob )?object|unable to read|is corrupt|missing (blob|tree|commit)"
)
_PASSED_OVER = "not a git repository (or any"  # of the folders above
_BROKEN = (
    *("not a git repository", "invalid gitfile format", "error opening '", "error reading '"),
    *(
        "appears to be broken",
        "reference broken",
        "bad object HEAD",
        "Invalid path '",
        "bad config line",
    ),
)


def _reason(verb: str, top: Path, errors: str) -> GitError | None:
    """Return the error for what git says of a repository as a whole, None if it says nothing of it."""
    if not top_of(top) and "not a git repository" in errors:
        return NoRepositoryError(f"{top} is in no git repository", "git init, or lessons init")
    if errors.startswith(_TIMEOUT):
        message = f"git {verb} did not answer in {READING_SECONDS:.0f} s"
        return GitTimeoutError(message, f"see what it waits for: git -C {_quoted(top)} status")
    if exception := _EXCEPTION.search(errors):
        message = f"git reads nothing of {top}, for it belongs to another user"
        return GitRefusedError(message, exception[1])
    if "does not have any commits yet" in errors:
        return NoCommitError(f"nothing is committed in {top} yet", "git commit")
    if any(words in errors for words in _BROKEN):
        what = _words(errors).removeprefix("fatal: ").removeprefix("error: ")
        if _PASSED_OVER in what:
            what = "git does not take it for a repository"
        return BrokenRepositoryError(f"{top / '.git'} is broken: {what}", _repair(top, errors))
    return None


def _reason_of_all(top: Path, message: str) -> GitError | None:
    """Ask git what it must know if it knows anything: the last commit.

    `message` is its error for another question, which may have failed for a reason of its own.
    """
    how = ("log", "-1", "--no-patch", "--no-show-signature", "--no-decorate", "--format=%H")
    try:
        status, _, errors = _run(top, top, [*_TO_READ, *how], seconds=READING_SECONDS)
    except OSError as error:
        return _not_run("log", top, error)
    why = _reason("log", top, errors) if status else None
    is_of_commits = any(words in message for words in ("HEAD", "Needed a single revision"))
    return None if isinstance(why, NoCommitError) and not is_of_commits else why


def _repair(top: Path, errors: str) -> str:
    if any(words in errors for words in ("bad object", "appears to be broken", "reference broken")):
        return f"git -C {_quoted(top)} fsck"
    if "/modules/" in errors:
        return "git submodule update --init, in the repository around it"
    if "/worktrees/" in errors:
        return f"git worktree repair {_quoted(top)}, in the main work tree"
    return f"repair it, or clone it again: git -C {_quoted(top)} status"


def _not_run(verb: str, folder: Path, error: OSError) -> GitError:
    if isinstance(error, FileNotFoundError) and folder.is_dir() and os.access(folder, os.X_OK):
        return NoGitError("there is no git command here", "install git")
    where = f"{error.filename}: " if error.filename else ""
    return GitError(f"git {verb}: {where}{error.strerror or error}", hint_for(error, ""))


def _failure(verb: str, errors: str) -> GitError:
    hint = "free some space" if is_full(errors) else ""
    hint = "git fsck" if _DAMAGE.search(errors) else hint
    hint = "use a clone without --filter" if "promisor remote" in errors else hint
    return GitError(f"git {verb}: {_words(errors) or 'failed'}", hint)


def _words(errors: str) -> str:
    lines = filter(None, map(str.strip, errors.splitlines()))
    return "; ".join([line for line in lines if not line.startswith("hint:")][:3])


def _quoted(folder: Path) -> str:
    return shlex.quote(str(folder))


def _refuse_programs(verb: str, top: Path, settings: Sequence[GitSetting]) -> None:
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
    """Return the name that commits of the user have in a repository; "" without one that git says."""
    if name := os.environ.get("GIT_AUTHOR_NAME", "").strip():  # git asks it first, too
        return name
    keys = ("author.name", "user.name")
    with suppress(GitError):
        values = (command(folder, "config", "--get", key, answers=(0, NOT_THERE)) for key in keys)
        return next(filter(None, values), "")
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


def _settings(folder: Path) -> list[GitSetting]:
    """Return all settings of git, and where each is from.

    Raises GitError where git tells none: of a repository that it does not read, and before 2.26.
    """
    words = ["config", "--list", "-z", "--show-scope"]
    status, listed, errors = _run(folder, top_of(folder), words, seconds=READING_SECONDS)
    if status:  # programs that they name would run
        if status == USAGE_ERROR:
            raise NoGitError("this git is too old: lessons needs git 2.26", "install a newer git")
        raise _reason("config", folder, errors) or _failure("config", errors)
    fields = os.fsdecode(listed).split("\0")
    settings = []
    for scope, entry in zip(fields[::2], fields[1::2], strict=False):
        key, _, value = entry.partition("\n")
        settings.append(GitSetting(scope, key, value))
    return settings


def _hooks_of_user(settings: Sequence[GitSetting]) -> str:
    of_user = [each for each in settings if not each.is_of_repository]
    hooks = {each.key: each.value for each in of_user}.get("core.hookspath", "")
    # a relative one is in the repository
    return hooks if hooks.startswith(("/", "~")) else ""


def _run(
    folder: Path,
    top: Path | None,
    arguments: Sequence[str],
    overrules: Sequence[tuple[str, str]] = (),
    settings: Sequence[GitSetting] = (),
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
        code = errno.EACCES if folder.exists() else errno.ENOENT
        raise OSError(code, os.strerror(code), str(folder))
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
    """Return the variables to add to our environment: git finds the work tree and never prompts.

    Settings that overrule others go here: a key may hold any character, `-c` splits at the first "=".
    """
    env = {"GIT_TERMINAL_PROMPT": "0", "GIT_EDITOR": ":", "LC_ALL": "C", "LANGUAGE": "C"}
    if (
        top is not None
    ):  # core.worktree may name any folder; above a broken `.git` git would look on
        env |= {"GIT_WORK_TREE": str(top), "GIT_CEILING_DIRECTORIES": str(top.parent)}
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
