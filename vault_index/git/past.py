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
from pathlib import Path

from vault_index.git.run import Repo, ask, ask_bytes, opened

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
