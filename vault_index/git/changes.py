"""Changes between two states of a repository: files, their lines, the patch."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path

from vault_index.git.dotgit import top_of
from vault_index.git.history import BATCH
from vault_index.git.run import ask, ask_bytes, ask_history
from vault_index.hotpath import index_files

_DIFF = (
    *("--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=all"),
    *("--src-prefix=a/", "--dst-prefix=b/"),
)
BIG_FILE_BYTES = 512 * 1024
MAX_FILES = 5_000  # whose lines are counted
MAX_UNTRACKED = 500  # that are read
MAX_REFLOG = 5_000  # entries
MAX_COMMITS = 200  # whose messages are read
_EMPTY = {
    "sha1": "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "sha256": "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}  # git's hashes of a tree without files
_CHANGES = (
    *("-c", f"core.bigFileThreshold={BIG_FILE_BYTES}", "-c", f"diff.orderFile={os.devnull}"),
    *("diff", *_DIFF, "-M", "-l400", "--no-relative"),
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

    @property
    def lines(self) -> int:
        return self.added + self.removed


@dataclass(slots=True)
class Difference:
    """A difference. `patch` has a text for each file that fits."""

    top: Path
    files: list[ChangedFile] = field(default_factory=list)
    patch: dict[str, str] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)  # of the commits, oldest first
    before: list[str] = field(default_factory=list)  # all paths of the older state


def base_at(folder: Path, when: float) -> str:
    """Return the commit that was checked out at a time (seconds since 1970), "" if there was none yet.

    By the reflog of HEAD, which knows what was here; where it does not go back so far, by the dates of
    commits.
    """
    top = top_of(folder)
    how = ("-g", f"-{MAX_REFLOG}", "--date=unix", "--format=%gd %H")
    for line in ask_history(top, "log", *how, "HEAD", "--").splitlines():
        entry, _, commit = line.partition(" ")
        date = _REFLOG.fullmatch(entry)
        if date and int(date[1]) <= when:
            return commit
    before = ("-1", "--first-parent", f"--before={int(when)}", "HEAD", "--")
    return ask_history(top, "rev-list", *before)


def difference(
    folder: Path, base: str, until: str, wanted: Callable[[str], bool], max_chars: int
) -> Difference | None:
    """Return the changes between a commit ("": the empty tree) and another ("": the work tree).

    `wanted` tells whether a path counts. The patch is of the smallest changes first, until there
    are `max_chars`. None without a repository.
    """
    top = top_of(folder)
    if top is None:
        return None
    result = Difference(top)
    base = base or _EMPTY[ask(top, "rev-parse", "--show-object-format")]
    revisions = [base, until] if until else [base]
    result.files = [each for each in _files(top, revisions) if wanted(each.path)]
    if base not in _EMPTY.values():
        result.before = ask(top, "ls-tree", "-r", "--name-only", "-z", base).split("\0")
    span = (until or "HEAD") if base in _EMPTY.values() else f"{base}..{until or 'HEAD'}"
    log = ask_history(top, "log", f"-{MAX_COMMITS}", "--no-merges", "--format=%B%x00", span, "--")
    result.messages = [each.strip() for each in log.split("\0") if each.strip()][::-1]
    result.files = result.files[:MAX_FILES]
    untracked = (
        [] if until else ask(top, "ls-files", "--others", "--exclude-standard", "-z").split("\0")
    )
    paths = [path for path in untracked if path and not path.endswith("/") and wanted(path)]
    room = _read_untracked(result, paths, max_chars)
    _read_patch(top, result, revisions, room)
    return result


def between(folder: Path, before: str, after: str) -> str:
    """Return the patch from a file to another, each `commit:path`; "" without a repository."""
    printed = ask_bytes(top_of(folder), *_CHANGES, "-U3", before, after, "--")
    return printed.decode("utf-8", "replace")


def _files(top: Path, revisions: Sequence[str]) -> Iterator[ChangedFile]:
    fields = iter(ask(top, *_CHANGES, "--raw", "--numstat", "-z", *revisions, "--").split("\0"))
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
            lines = [int(text) if text.isdecimal() else 0 for text in (added, removed)]
            yield ChangedFile(path, status, lines[0], lines[1], before)


def _read_untracked(result: Difference, paths: Sequence[str], room: int) -> int:
    """Add files that git does not track yet; return the number of characters left."""
    for path in paths[:MAX_UNTRACKED]:
        try:
            data = index_files.read(result.top / path, BIG_FILE_BYTES + 1)
        except OSError:  # a link, a pipe
            data = b"\0"
        if len(data) > BIG_FILE_BYTES or b"\0" in data[:8000]:
            result.files.append(ChangedFile(path, "A"))
            continue
        lines = data.decode("utf-8", "replace").splitlines()
        result.files.append(ChangedFile(path, "A", len(lines)))
        head = [f"--- {os.devnull}", f"+++ b/{path}"]
        text = "\n".join([*head, *(f"+{line}" for line in lines), ""])
        if len(text) <= room:
            result.patch[path] = text
            room -= len(text)
    return room


def _read_patch(top: Path, result: Difference, revisions: Sequence[str], room: int) -> None:
    """Add the patches of files, those with the fewest lines first, as long as there is room."""
    changed = [file for file in result.files if file.lines and file.path not in result.patch]
    changed.sort(key=attrgetter("lines"))
    for start in range(0, len(changed), BATCH):
        batch = changed[start : start + BATCH]
        if room <= 0:
            break
        paths = [path for file in batch for path in (file.before, file.path) if path]
        printed = ask_bytes(top, *_CHANGES, "-U3", *revisions, "--", *paths)
        for part in re.split(r"(?m)^(?=diff --git )", printed.decode("utf-8", "replace")):
            begin = part.find("\n--- ") + 1
            if not begin:  # a mode, a rename alone, a binary file
                continue
            text = part[begin:]
            old, new = (line[4:] for line in text.split("\n", 2)[:2])
            path = (new if new != os.devnull else old).rstrip("\t")[2:]
            if len(text) <= room:
                result.patch[path] = text
                room -= len(text)
