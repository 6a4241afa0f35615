"""The settings of git that name a program, and what to put in the place of a repository's own.

A repository that somebody copied or unpacked brings its `.git/config` along, and git starts the programs
that it names: filters, gpg, credential helpers, merge drivers... Names of filters and drivers are
free, so the list cannot be fixed: git is asked which settings there are, and from which file, and
each one that the repository itself makes is set to the user's own value, or to one that starts nothing.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

_REPOSITORY = ("local", "worktree")  # the scopes of git's settings that come with a folder


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


# -P: in the work tree of others nothing is imported from the current folder
_OUR_DRIVER = (
    f"{shlex.quote(sys.executable)} -P -m vault_index merge-driver --marker-size %L %O %A %B"
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
        (r"gpg\.ssh\.(defaultkeycommand|allowedsignersfile|revocationfile)", ""),
        (r"core\.askpass", ""),
        (r"(core|sequence)\.editor", ":"),
        (r"remote\..*\.uploadpack", "git-upload-pack"),
        (r"remote\..*\.receivepack", "git-receive-pack"),
        (r"protocol\.ext\.allow", "never"),
        (r"protocol\.allow", "user"),
        (r"hook\..*\.enabled", "false"),
        (r"http\.(.*\.)?savecookies", "false"),
    )
]
_HOOK = re.compile(r"(hook\..*)\.command", re.IGNORECASE)
_FILTER = re.compile(r"(filter\..*)\.(clean|smudge|process)", re.IGNORECASE)
_HELPER = re.compile(r"credential\.(.*\.)?helper", re.IGNORECASE)
# no value starts nothing, so a command that would use it is refused
_REFUSED = re.compile(r"core\.(gitproxy|alternaterefscommand)|remote\..*\.vcs", re.IGNORECASE)


def parse(listed: str) -> list[Setting]:
    """Return the settings that `git config --list -z --show-scope` prints."""
    fields = listed.split("\0")
    return [
        Setting(scope, *_key_and_value(entry))
        for scope, entry in zip(fields[::2], fields[1::2], strict=False)
    ]


def _key_and_value(entry: str) -> tuple[str, str]:
    key, _, value = entry.partition("\n")
    return key, value


def instead(settings: Sequence[Setting], *, filters: bool) -> list[tuple[str, str]]:
    """Return settings that overrule those with which a repository names a program.

    With `filters`, the filters of the user and the system stay; without, none runs: what only reads
    needs none.
    """
    own = {setting.key: setting.value for setting in settings if not setting.is_of_repository}
    overruled = [
        setting
        for setting in settings
        if setting.is_of_repository or (not filters and _is_filter(setting))
    ]
    return [
        *_programs(overruled, own, filters=filters),
        *_helpers(settings),
    ]


def _is_filter(setting: Setting) -> bool:
    return _FILTER.fullmatch(setting.key) is not None


def _programs(
    overruled: Iterable[Setting], own: dict[str, str], *, filters: bool
) -> Iterator[tuple[str, str]]:
    for key in dict.fromkeys(setting.key for setting in overruled):
        wanted = own if filters or not _FILTER.fullmatch(key) else {}
        for form, value in _INSTEAD:
            if form.fullmatch(key):
                yield key, wanted.get(key, value)
        driver, hook = _FILTER.fullmatch(key), _HOOK.fullmatch(key)
        if driver and key not in wanted:
            yield f"{driver[1]}.required", "false"
        if hook:
            yield f"{hook[1]}.enabled", "false"


def _helpers(settings: Iterable[Setting]) -> Iterator[tuple[str, str]]:
    """Yield an empty credential helper, which takes all back, and then the user's own."""
    helpers = [setting for setting in settings if _HELPER.fullmatch(setting.key)]
    if any(setting.is_of_repository for setting in helpers):
        yield "credential.helper", ""
        yield from (
            (setting.key, setting.value) for setting in helpers if not setting.is_of_repository
        )


def refused(settings: Iterable[Setting]) -> str:
    """Return the key of a repository's setting that names a program and cannot be overruled, or ""."""
    keys = (setting.key for setting in settings if setting.is_of_repository)
    return next((key for key in keys if _REFUSED.fullmatch(key)), "")


def of_user(settings: Iterable[Setting], key: str) -> str:
    """Return the value of a setting that the user or the system made, or ""."""
    values = [
        setting.value for setting in settings if setting.key == key and not setting.is_of_repository
    ]
    return values[-1] if values else ""
