"""What changed between two states of a repository: files, their lines, the patch; within bounds.

Nothing that a repository names runs: no filter, no textconv, no external diff. A file above
BIG_FILE_BYTES counts as binary, so neither ten thousand files nor one of 100 MB are held in memory.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from stat import S_ISREG

from vault_index.git.run import Repo, ask, ask_bytes, opened

BIG_FILE_BYTES = 512 * 1024
MOST_FILES = 5_000  # whose lines are counted
MOST_UNTRACKED = 500  # that are read
MOST_REFLOG = 5_000  # entries
MOST_COMMITS = 200  # whose messages are read
_BATCH = 25  # files of which git prints the patch at once
_EMPTY = {
    40: "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    64: "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}  # git's hashes of a tree without files
_DIFF = (
    *("-c", f"core.bigFileThreshold={BIG_FILE_BYTES}", "-c", f"diff.orderFile={os.devnull}"),
    *("diff", "--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=all", "-M"),
    *("-l400", "--src-prefix=a/", "--dst-prefix=b/", "--no-relative"),
)
_REFLOG = re.compile(r"HEAD@\{(\d+)\}")


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A file that differs. `status` is git's letter: A, M, D, R, T; lines are 0 for a binary file."""

    path: str
    status: str
    added: int = 0
    removed: int = 0
    before: str = ""


@dataclass(slots=True)
class Difference:
    """What differs. `patch` has a text for each file that fits, `left_out` says what does not."""

    top: Path
    files: list[ChangedFile] = field(default_factory=list)
    patch: dict[str, str] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)  # of the commits, oldest first
    before: list[str] = field(default_factory=list)  # all paths of the older state
    left_out: list[str] = field(default_factory=list)


def base_at(folder: Path, when: float) -> tuple[str, str]:
    """Return the commit that was checked out at a time (seconds since 1970), and how that was known.

    By the reflog of HEAD, which knows what was here; where it does not go back so far, by the dates of
    commits. With ("", "") there was no commit yet.
    """
    with opened(folder) as repo:
        if repo is None:
            return "", ""
        log = ask(
            repo, "log", "-g", f"-{MOST_REFLOG}", "--date=unix", "--format=%gd %H", "HEAD", "--"
        )
        for line in log.splitlines():
            entry, _, commit = line.partition(" ")
            at = _REFLOG.fullmatch(entry)
            if at and int(at[1]) <= when:
                return commit, "the commit that was checked out then, by the reflog"
        dated = ("-1", "--first-parent", f"--before={int(when)}")
        commit = ask(repo, "rev-list", *dated, "HEAD", "--")
        return commit, "the last commit before it, by date" if commit else ""


def difference(
    folder: Path, base: str, until: str, wanted: Callable[[str], bool], most_chars: int
) -> Difference | None:
    """Return what differs between a commit ("" for nothing at all) and another, "" for the work tree.

    `wanted` says of a path whether it counts. The patch is of the smallest changes first, until there
    are `most_chars`. None without a repository.
    """
    with opened(folder) as repo:
        if repo is None:
            return None
        result = Difference(repo.top)
        base = base or _EMPTY[64 if len(ask(repo, "rev-parse", "HEAD")) == 64 else 40]
        revisions = [base, until] if until else [base]
        result.files = [each for each in _files(repo, revisions) if wanted(each.path)]
        untracked = [] if until else _untracked(repo, wanted)
        if base not in _EMPTY.values():
            result.before = ask(repo, "ls-tree", "-r", "--name-only", "-z", base).split("\0")
        span = (until or "HEAD") if base in _EMPTY.values() else f"{base}..{until or 'HEAD'}"
        log = ask(repo, "log", f"-{MOST_COMMITS}", "--no-merges", "--format=%B%x00", span, "--")
        result.messages = [each.strip() for each in log.split("\0") if each.strip()][::-1]
        _bound(result)
        room = _read_untracked(result, untracked, most_chars)
        _read_patch(repo, result, revisions, room)
    return result


def between(folder: Path, before: str, after: str) -> str:
    """Return the patch from a file to another, each `commit:path`; "" without a repository."""
    with opened(folder) as repo:
        if repo is None:
            return ""
        return ask_bytes(repo, *_DIFF, "-U3", before, after, "--").decode("utf-8", "replace")


def parent(folder: Path, commit: str) -> str:
    """Return the first parent of a commit, "" for the first commit."""
    with opened(folder) as repo:
        return ask(repo, "rev-parse", "--verify", "--quiet", f"{commit}^") if repo else ""


def _files(repo: Repo, revisions: Sequence[str]) -> Iterator[ChangedFile]:
    fields = iter(ask(repo, *_DIFF, "--raw", "--numstat", "-z", *revisions, "--").split("\0"))
    kinds: dict[str, tuple[str, str]] = {}  # path -> status and path before
    for entry in fields:
        if entry.startswith(":"):
            status = entry.rpartition(" ")[2][:1]
            path, before = next(fields, ""), ""
            if status in "RC":
                path, before = next(fields, ""), path
            kinds[path] = status, before
        elif entry:
            added, _, rest = entry.partition("\t")
            removed, _, path = rest.partition("\t")
            if not path:  # a rename names both
                next(fields, "")
                path = next(fields, "")
            status, before = kinds.get(path, ("M", ""))
            yield ChangedFile(path, status, _number(added), _number(removed), before)


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0


def _untracked(repo: Repo, wanted: Callable[[str], bool]) -> list[str]:
    listed = ask(repo, "ls-files", "--others", "--exclude-standard", "-z").split("\0")
    return [path for path in listed if path and not path.endswith("/") and wanted(path)]


def _bound(result: Difference) -> None:
    if len(result.files) > MOST_FILES:
        result.left_out.append(f"{len(result.files) - MOST_FILES} of {len(result.files)} files")
        result.files = result.files[:MOST_FILES]


def _read_untracked(result: Difference, paths: Sequence[str], room: int) -> int:
    """Add files that git does not track yet; return how many characters are left."""
    if len(paths) > MOST_UNTRACKED:
        result.left_out.append(f"{len(paths) - MOST_UNTRACKED} of {len(paths)} new files")
    for path in paths[:MOST_UNTRACKED]:
        data = _content(result.top / path)
        if data is None or b"\0" in data[:8000]:
            result.files.append(ChangedFile(path, "A"))
            continue
        lines = data.decode("utf-8", "replace").splitlines()
        result.files.append(ChangedFile(path, "A", len(lines)))
        text = "\n".join(
            [f"--- {os.devnull}", f"+++ b/{path}", *(f"+{line}" for line in lines), ""]
        )
        if len(text) <= room:
            result.patch[path] = text
            room -= len(text)
        else:
            result.left_out.append(f"the text of {path}")
    return room


def _content(file: Path) -> bytes | None:
    """Return an ordinary file that is not big; None for others."""
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as opened_file:
        state = os.fstat(handle)
        if not S_ISREG(state.st_mode) or state.st_size > BIG_FILE_BYTES:
            return None
        return opened_file.read(BIG_FILE_BYTES)


def _read_patch(repo: Repo, result: Difference, revisions: Sequence[str], room: int) -> None:
    """Add the patches of files, those with the fewest lines first, as long as there is room."""
    there = [
        file for file in result.files if file.path not in result.patch and file.added + file.removed
    ]
    there.sort(key=lambda file: file.added + file.removed)
    left = 0
    for at in range(0, len(there), _BATCH):
        some = there[at : at + _BATCH]
        if room <= 0:
            left += len(some)
            continue
        paths = [path for file in some for path in (file.before, file.path) if path]
        printed = ask_bytes(repo, *_DIFF, "-U3", *revisions, "--", *paths).decode(
            "utf-8", "replace"
        )
        for path, text in _by_file(printed):
            if len(text) > room:
                left += 1
                continue
            result.patch[path] = text
            room -= len(text)
    if left:
        result.left_out.append(f"the text of {left} files")


def _by_file(printed: str) -> Iterator[tuple[str, str]]:
    for part in re.split(r"(?m)^(?=diff --git )", printed):
        begin = part.find("\n--- ")
        if not part or begin < 0:  # a mode, a rename alone, a binary file
            continue
        text = part[begin + 1 :]
        old, new = text.split("\n", 2)[:2]
        named = new[4:] if new[4:] != os.devnull else old[4:]
        yield named.rstrip("\t")[2:], text
