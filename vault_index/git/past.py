"""What was in a repository at a commit, and what is gone since: for lessons that cite it.

The answers are those of git alone: no filter, no external diff, no program that the repository names.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from vault_index.git.run import Repo, ask, ask_bytes, command, opened

_DIFF = ("--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=all",
         "--src-prefix=a/", "--dst-prefix=b/")  # fmt: skip
_FILE = re.compile(rb"^--- (?:a/(.*?)|/dev/null)\t?$")


@dataclass(slots=True)
class Change:
    """What became of a file since a commit: the lines that are gone, and whether all of it is."""

    is_deleted: bool = False
    gone: list[bytes] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Past:
    """A repository, to be asked about its past. `top` is its folder."""

    repo: Repo
    top: Path

    def days(self) -> dict[str, str]:
        """Return the last commit of each day (UTC) of HEAD's history: `{"2026-11-22": commit}`."""
        log = ask(self.repo, "log", "--format=%ct %H")
        days: dict[str, str] = {}
        for line in log.splitlines():
            seconds, _, commit = line.partition(" ")
            days.setdefault(_day(seconds), commit)
        return days

    def last_changes(self, folder: Path) -> dict[str, str]:
        """Return the day (UTC) on which the content of each file below a folder was changed last.

        Keys are relative to the folder. A file that only moved was not changed.
        """
        prefix = ask(self.repo, "-C", str(folder), "rev-parse", "--show-prefix")
        log = ask(
            self.repo, "log", "-M", "--name-status", "-z", f"--relative={prefix}",
            "--format=%x01%ct", "--", prefix or ".",
        )  # fmt: skip
        return _last_changes(log)

    def names(self, commit: str) -> frozenset[str]:
        """Return the paths of all files at a commit, from the top."""
        return frozenset(ask(self.repo, "ls-tree", "-r", "--name-only", "-z", commit).split("\0"))

    def changes(self, commit: str) -> dict[str, Change]:
        """Return what is gone of each file since a commit, up to HEAD; a moved file is gone there."""
        diff = ask_bytes(
            self.repo,
            "diff",
            "-U0",
            "--no-renames",
            "--diff-filter=MDT",
            *_DIFF,
            commit,
            "HEAD",
            "--",
        )
        changes: dict[str, Change] = {}
        change = Change()
        in_head = False
        for line in diff.split(b"\n"):
            if line.startswith(b"diff --git "):
                change, in_head = Change(), True
            elif in_head and line.startswith(b"deleted file mode"):
                change.is_deleted = True
            elif in_head and (name := _FILE.match(line)):
                if name[1]:
                    changes[os.fsdecode(name[1])] = change
            elif line.startswith(b"@@"):
                in_head = False
            elif not in_head and line.startswith(b"-"):
                change.gone.append(line[1:])
        return changes

    def renames(self, commit: str) -> dict[str, str]:
        """Return the files that have another name since a commit: old path -> new path."""
        options = ("-M", "--diff-filter=R", "--name-status", "-z", *_DIFF)
        fields = iter(ask(self.repo, "diff", *options, commit, "HEAD", "--").split("\0"))
        return {next(fields, ""): next(fields, "") for status in fields if status}

    def lines(self, commit: str, path: str) -> int:
        """Count the lines of a file at a commit."""
        return self.content(commit, path).count(b"\n")

    def content(self, commit: str, path: str) -> bytes:
        """Return a file as it was at a commit; b"" if it was not there."""
        return ask_bytes(self.repo, "cat-file", "blob", f"{commit}:{path}")

    def there_now(self, words: Collection[str], outside: str) -> set[str]:
        """Return those of some words that a tracked file has now, as it is on the disk.

        Files below the folder `outside`, from the top, do not count.
        """
        if not words:
            return set()
        with tempfile.TemporaryFile() as patterns:
            patterns.write("".join(f"{word}\n" for word in sorted(words)).encode())
            patterns.seek(0)
            told = ask_bytes(
                self.repo, "--no-literal-pathspecs", "grep", "-h", "-o", "-w", "-F", "-I",
                *("--no-textconv", "-f", "-", "--", ":/", f":(top,exclude,literal){outside}"),
                stdin=patterns, answers=(0, 1),
            )  # fmt: skip
        return set(os.fsdecode(told).splitlines())


def _day(seconds: str) -> str:
    return datetime.fromtimestamp(int(seconds), UTC).date().isoformat()


@contextmanager
def look_back(folder: Path) -> Iterator[Past | None]:
    """Yield the past of the repository around a folder; None without a repository."""
    with opened(folder) as repo:
        yield Past(repo, repo.top) if repo else None


def _last_changes(log: str) -> dict[str, str]:
    """Read `git log --name-status -z`, newest commit first."""
    changed: dict[str, str] = {}
    today: dict[str, str] = {}  # a path's name back then -> its name now
    day = ""
    fields = iter(log.split("\0"))
    for entry in fields:
        text = entry.lstrip("\n")
        if text.startswith("\x01"):
            day = _day(text[1:].strip())
            continue
        if not text:
            continue
        path = next(fields, "")
        if text[0] in "RC":
            older, path = path, next(fields, "")
            if text[0] == "R":
                today[older] = today.get(path, path)
            if text.strip() == "R100":
                continue
        changed.setdefault(today.get(path, path), day)
    return changed


# What a move of the checked-out branch would overwrite without git saying a word.

_ABSENT, _SUBMODULE = "000000", "160000"


@dataclass(frozen=True, slots=True)
class Overwritten:
    """A path from the top that would be lost, the reason, and what the user can do."""

    path: str
    reason: str
    hint: str


def overwritten_files(top: Path, old: str, new: str) -> Iterator[Overwritten]:
    """Yield what `git read-tree -m -u old new` would overwrite although it is not committed.

    That command refuses to lose what is modified, staged or untracked. It overwrites what git
    ignores, and brings back a file that was deleted without staging the deletion.
    """
    checkout = _Checkout(top)
    changes = list(_changes(top, old, new))
    removed = {path.casefold() for _, mode, path in changes if mode == _ABSENT}
    for was, becomes, path in changes:
        if becomes == _ABSENT:
            continue
        if was == _ABSENT and path.casefold() in removed and checkout.ignores_case:
            continue  # the same file: only the case of its name changes
        if was not in (_ABSENT, _SUBMODULE) and not os.path.lexists(top / path):
            if path not in checkout.left_out:
                yield Overwritten(
                    path,
                    "is deleted here and changed there",
                    f"commit the deletion, or git restore {path}, then lessons sync",
                )
        elif was in (_ABSENT, _SUBMODULE) and becomes != _SUBMODULE:
            blocking = checkout.blocking(path)
            if blocking:
                yield Overwritten(
                    blocking,
                    "is ignored by git here and committed there",
                    f"move {blocking} elsewhere, then lessons sync",
                )


@dataclass
class _Checkout:
    """The files of a working tree, as far as git knows them."""

    top: Path

    @cached_property
    def ignores_case(self) -> bool:
        """Whether the file system takes README.md and readme.md for the same file."""
        return command(self.top, "config", "--get", "core.ignorecase", check=False) == "true"

    @cached_property
    def tracked(self) -> set[str]:
        """The paths in git's index."""
        return {name for name in command(self.top, "ls-files", "-z").split("\0") if name}

    @cached_property
    def left_out(self) -> set[str]:
        """The paths that a sparse checkout leaves out."""
        listed = command(self.top, "ls-files", "-v", "-z").split("\0")
        return {line[2:] for line in listed if line[:1] in ("S", "s")}

    def blocking(self, path: str) -> str:
        """Return the untracked file where a new file belongs, or above or below it; "" for none."""
        above = [str(parent) for parent in Path(path).parents][-2::-1]
        for folder in above:
            place = self.top / folder
            if os.path.lexists(place) and (place.is_symlink() or not place.is_dir()):
                return "" if folder in self.tracked else folder
        place = self.top / path
        if place.is_dir() and not place.is_symlink():
            below = (
                str((Path(folder) / name).relative_to(self.top))
                for folder, folders, names in os.walk(place)
                for name in [
                    *names,
                    *(
                        folder_name
                        for folder_name in folders
                        if (Path(folder) / folder_name).is_symlink()
                    ),
                ]
            )
            return next((file for file in below if file not in self.tracked), "")
        return path if os.path.lexists(place) and path not in self.tracked else ""


def _changes(top: Path, old: str, new: str) -> Iterator[tuple[str, str, str]]:
    """Yield (mode before, mode after, path) of each file that two commits have in different ways."""
    raw = command(top, "diff-tree", "-r", "-z", "--raw", "--no-renames", old, new).split("\0")
    for entry, path in zip(raw[::2], raw[1::2], strict=False):
        before, after = entry.lstrip(":").split()[:2]
        yield before, after, path
