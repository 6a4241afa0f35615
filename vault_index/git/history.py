"""The history of a repository: authors and dates of files, their versions, their contents."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from vault_index.errors import GitError, GitUnavailableError
from vault_index.git.dotgit import cut_of, top_of
from vault_index.git.run import NOT_THERE, SUBMODULE, ask, ask_bytes, ask_history, command

_ORDINARY = "100"  # how the mode of a file begins that is no link
BATCH = 25  # files of which git prints the content, or the patch, at once
UNKNOWN_AUTHOR = "author unknown"  # in the place of a name, where git did not answer
_AS_PUSHED = "--no-replace-objects"  # a push sends the object that another one replaces here


@dataclass(frozen=True, slots=True)
class Provenance:
    """A file's last author, and its first and last commit (ISO 8601 dates of the author).

    A commit that a shallow clone cut off is "": `last` is then the date of the oldest commit it has.
    """

    author: str
    first: str
    last: str


@dataclass(frozen=True, slots=True)
class Version:
    """A file as a commit left it, and who made that, when (ISO 8601) and why."""

    commit: str
    name: str
    when: str
    subject: str
    path: str
    content: bytes


def provenance(folder: Path, head: str = "HEAD") -> dict[str, Provenance]:
    """Walk `git log` once and return the provenance of each committed file below a folder.

    Keys are paths relative to the folder, renames followed. `head` is the commit to walk from, and
    not what is checked out by the time git looks.
    """
    top = top_of(folder)
    if top is None:
        return {}
    how = ("--name-status", "-z", "--relative", "--format=%x01%H%x02%aN%x02%aI", head, "--", ".")
    cut = cut_of(top)
    by_name: dict[str, Provenance] = {}
    for change in name_changes(_log(top, *how, folder=folder)):
        commit, author, when = change.header.split("\x02")
        is_cut = commit in cut
        newest = by_name.get(change.today, Provenance("" if is_cut else author, when, when))
        by_name[change.today] = replace(newest, first="" if is_cut else when)
    return by_name


def _log(top: Path | None, *how: str, folder: Path) -> str:
    """Print a log with renames; of a clone without old contents with those alone that changed nothing."""
    try:
        return ask_history(top, "log", "-M", *how, folder=folder)
    except GitUnavailableError:
        raise
    except GitError:
        return ask_history(top, "log", "-M100%", *how, folder=folder)


def is_partial(folder: Path) -> bool:
    """Whether the repository around a folder is a clone that fetches contents when they are needed."""
    promises = ("config", "--get-regexp", r"^remote\..*\.promisor$")
    return bool(command(folder, *promises, answers=(0, NOT_THERE)))


class NameChange(NamedTuple):
    """The change of a file by a commit: git's letter and score, such as R100; the path before, "" if new.

    `said` is what the format says of the commit. `today` is the name that the file has now. With
    `--raw`, `old_mode` and `mode` are the file's before and after, and `blob` is its content.
    """

    header: str
    status: str
    path: str
    before: str
    today: str
    old_mode: str = ""
    mode: str = ""
    blob: str = ""


def name_changes(log: str) -> Iterator[NameChange]:
    """Read git's output with `-z` and `--name-status` or `--raw`, of a log newest commit first.

    The format of a log begins with \\x01.
    """
    now: dict[str, str] = {}  # a path's name back then -> its name now
    header = ""
    fields = iter(log.split("\0"))
    for entry in fields:
        text = entry.strip("\n")
        if text.startswith("\x01"):
            header, _, text = text[1:].partition("\n")
        if text:
            *modes, status = text.strip(":\n").split(" ")
            path = next(fields, "")
            before, path = (path, next(fields, "")) if status[0] in "RC" else ("", path)
            today = now.get(path, path)
            if status[0] == "R":
                now[before] = today
            old_mode, mode, _, blob = modes or ("", "", "", "")
            yield NameChange(header, status, path, before, today, old_mode, mode, blob)


def versions(folder: Path, path: str) -> Iterator[Version]:
    """Return each version of a file that commits of HEAD have, newest first; renames are followed.

    A merge counts if somebody had to think about it: it has lines that no side had so.
    """
    top = top_of(folder)
    form = "--format=%x01%H%x02%P%x02%aN%x02%aI%x02%s"
    options = ("-c", "--follow", "--name-only", "-z", form, "--no-ext-diff")
    log = _log(top, *options, "--", path, folder=folder)
    cut = cut_of(top) if top else ()
    commits: list[tuple[list[str], str]] = []  # what is said of a commit, the file's path there
    fields: list[str] = []
    for entry in log.split("\0"):
        if entry.startswith("\x01"):
            fields = entry[1:].split("\x02", 4)
        elif entry.strip("\n"):  # a merge in which the file is as on one side names none
            commits.append((fields, entry.lstrip("\n")))
    paths = sorted({path_then for _, path_then in commits})
    for (commit, parents, name, when, subject), path_then in commits:
        if " " in parents and not _has_own_lines(top, commit, paths):
            continue
        content = _content(top, f"{commit}:{path_then}")
        if commit in cut:
            name, subject = "", "here, or before this shallow clone begins"
        yield Version(commit, name, when, subject.strip(), path_then, content)


def _content(top: Path | None, name: str) -> bytes:
    """Return a blob, b"" if a partial clone lacks it."""
    try:
        return ask_bytes(top, "cat-file", "blob", name)
    except GitUnavailableError:
        raise
    except GitError:
        return b""


def _has_own_lines(top: Path | None, commit: str, paths: Sequence[str]) -> bool:
    """Whether a merge has lines that no side had so; also where a partial clone lacks the sides."""
    how = ("--cc", "-M", "-U0", "--no-ext-diff", "--no-textconv", "--no-commit-id", "-p")
    try:
        return bool(ask(top, "diff-tree", *how, commit, "--", *paths))
    except GitUnavailableError:
        raise
    except GitError:
        return True


def changed_since(folder: Path, commit: str, kinds: str = "AMT") -> list[str]:
    """List files below a folder that are not as they were at a commit, relative to the folder.

    `kinds` are git's letters: A for added, M and T for changed, D for deleted.
    """
    how = ("--name-only", "-z", "--no-renames", "--no-ext-diff", f"--diff-filter={kinds}", commit)
    names = ask_history(top_of(folder), "diff", *how, "--relative", "--", ".", folder=folder)
    return list(filter(None, names.split("\0")))


def deleted(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield (commit, path) of each file below a folder that is deleted, newest first.

    The commit is "" where HEAD still has the file. Paths are relative to the folder; a rename in a
    commit does not count as a deletion.
    """
    yield from (("", path) for path in changed_since(folder, "HEAD", "D"))
    how = ("-M", "--diff-filter=D", "--name-status", "-z", "--relative", "--format=%x01%H")
    log = ask_history(top_of(folder), "log", *how, "--", ".", folder=folder)
    yield from ((change.header, change.path) for change in name_changes(log))


class Removal(NamedTuple):
    """When a commit that took a file away was written and committed, in seconds since 1970."""

    written: int
    committed: int


def removals(folder: Path, since: int) -> dict[str, Removal]:
    """Return the times at which files below a folder were last deleted or renamed, since a time.

    Keys are relative to the folder. A file may be back by now.
    """
    how = ("--no-renames", "--diff-filter=D", "--no-ext-diff", "--name-status", "-z", "--relative")
    form = ("--format=%x01%at %ct", f"--since={since}", "--", ".")
    last: dict[str, Removal] = {}
    for change in name_changes(ask_history(top_of(folder), "log", *how, *form, folder=folder)):
        last.setdefault(change.path, Removal(*map(int, change.header.split())))
    return last


def resolve(folder: Path, revision: str) -> str:
    """Return the commit (40 hexadecimal digits) that a revision names, "" if none."""
    if revision == "HEAD":  # one that names a broken branch, or a lost commit, is not "none"
        return ask_history(top_of(folder), "rev-parse", "--verify", "HEAD^{commit}", folder=folder)
    name = ("--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    printed = ask(top_of(folder), "rev-parse", *name, folder=folder, answers=(0, NOT_THERE))
    return printed.removeprefix("--end-of-options\n")


def fork_point(folder: Path, revision: str) -> str:
    """Return the last commit that HEAD and a revision share; of a shallow clone the revision's own.

    "" if the revision names no commit.
    """
    commit = resolve(folder, revision)
    top = top_of(folder)
    shared = commit and ask_history(top, "merge-base", "HEAD", commit, answers=(0, NOT_THERE))
    return shared or commit


def count(folder: Path, *commits: str) -> int:
    """Count commits, named as for `git rev-list`: `a..b`, or `a --not b`."""
    return int(ask(top_of(folder), "rev-list", "--count", *commits, "--") or 0)


def at_date(folder: Path, date: str) -> str:
    """Return the last commit of HEAD before the end of a date such as 2026-03-31, else ""."""
    from datetime import datetime

    try:
        datetime.fromisoformat(date)
    except ValueError:
        return ""
    end = f"{date} 23:59:59" if len(date) == 10 else date
    return ask_history(top_of(folder), "rev-list", "-1", f"--before={end}", "HEAD", "--")


def tree(folder: Path, commit: str) -> str:
    """Return the hash of what a folder held at a commit, "" if it was not there."""
    name = ("--verify", "--quiet", f"{commit}:./")
    top = top_of(folder)
    found = ask(top, "rev-parse", *name, folder=folder, answers=(0, NOT_THERE))
    if not found:
        ask(top, "ls-tree", commit)  # raises for a commit that cannot be read
    return found


def tree_files(folder: Path, tree: str) -> Iterator[tuple[str, bytes]]:
    """Yield the path and content of each ordinary file of a tree; links are left out."""
    listed = ask(top_of(folder), "ls-tree", "-r", "-z", tree).split("\0")
    entries = [entry.partition("\t")[::2] for entry in listed if entry.startswith(_ORDINARY)]
    blobs = _blobs(folder, [head.split()[2] for head, _ in entries])
    for (_, path), data in zip(entries, blobs, strict=True):
        if data is None:
            raise GitError(f"git cat-file: {path} could not be read", "git fsck")
        yield path, data


def outgoing(
    folder: Path, commits: Sequence[str], wanted: Callable[[str], bool]
) -> Iterator[tuple[str, str, bytes]]:
    """Yield each version of a wanted file that some commits made, as for `git rev-list`.

    As (commit, path from the repository's top, content); what a path holds is yielded once. Nothing
    of this may be missed: raises GitError where git does not answer.
    """
    top = top_of(folder)
    # no path is named: git would leave out side branches that came to nothing in the end
    log = ask(
        top,
        *(_AS_PUSHED, "-c", "log.showRoot=true", "-c", "log.diffMerges=separate"),
        *("log", "--raw", "-z", "--no-abbrev", "--no-renames", "-m"),
        "--format=%x01%H",
        *commits,
        "--",
    )
    commit_of: dict[tuple[str, str], str] = {}
    for change in name_changes(log):
        if change.status != "D" and wanted(change.path) and change.mode != SUBMODULE:
            commit_of.setdefault((change.path, change.blob), change.header)
    entries = list(commit_of.items())
    for start in range(0, len(entries), BATCH):
        batch = entries[start : start + BATCH]
        blobs = _blobs(folder, [blob for (_, blob), _ in batch], _AS_PUSHED)
        for ((path, blob), commit), content in zip(batch, blobs, strict=True):
            if content is None:
                raise GitError(f"git cat-file: {blob[:10]} could not be read", "git fsck")
            yield commit, path, content


def messages(folder: Path, commits: Collection[str]) -> list[tuple[str, str]]:
    """Return (commit, message) of some commits. Raises GitError where git does not answer."""
    how = (_AS_PUSHED, "log", "--no-walk", "--stdin", "-z", "--format=%H%n%B")
    lines = "".join(f"{commit}\n" for commit in commits)
    printed = os.fsdecode(ask_bytes(top_of(folder), *how, stdin=lines)) if commits else ""
    read = dict(each.split("\n", 1) for each in printed.split("\0") if each)
    if read.keys() != set(commits):
        raise GitError("git log: the messages to push could not be read", "git fsck")
    return list(read.items())


MAX_RENAMES = 10  # that are followed back to who wrote the text


@dataclass(frozen=True, slots=True)
class Voucher:
    """A commit that changed a file.

    `author` and `committer` are (name, address) as the commit says: whoever made it chose both.
    """

    commit: str
    path: str  # of the file in that commit
    author: tuple[str, str]
    committer: tuple[str, str]


def contents(folder: Path, files: Mapping[str, tuple[str, str]]) -> dict[str, bytes]:
    """Return the contents of files in commits: `files` are (commit, path from the folder), by any name.

    Files that a commit does not have are left out. One run of git for all of them. Raises GitError.
    """
    # a line is a question, so a path with a line end in it could ask for another file
    requests = {name: source for name, source in files.items() if "\n" not in source[1]}
    blobs = _blobs(folder, [f"{commit}:./{path}" for commit, path in requests.values()])
    if None in blobs:
        resolve(folder, "HEAD")  # raises for a commit that cannot be read: it lacks every file
    return {name: data for name, data in zip(requests, blobs, strict=True) if data is not None}


def staged_contents(top: Path, blobs: Sequence[str], limit: int) -> list[bytes]:
    """Return the contents of the next commit's blobs, by their names.

    For a blob of more than `limit` bytes: `limit` + 1 zeros. Two runs of git for all of them. Raises
    GitError for a blob that is lost.
    """
    lines = "".join(f"{blob}\n" for blob in blobs)
    listed = ask_bytes(top_of(top), "cat-file", "--batch-check=%(objectsize)", stdin=lines)
    sizes = zip(blobs, listed.splitlines(), strict=False)  # no line, where git does not answer
    long = {blob for blob, size in sizes if size.isdigit() and int(size) > limit}
    short = [blob for blob in blobs if blob not in long]
    read = dict(zip(short, _blobs(top, short), strict=True))
    if lost := [blob for blob, data in read.items() if data is None]:
        raise GitError(f"git cat-file: {lost[0][:10]} could not be read", "git fsck")
    return [bytes(limit + 1) if blob in long else read[blob] or b"" for blob in blobs]


def _blobs(folder: Path, names: Sequence[str], *options: str) -> list[bytes | None]:
    """Return the contents of blobs, by any names that git takes; None for another name."""
    if not names:
        return []
    lines = "".join(f"{name}\n" for name in names)
    words = (*options, "cat-file", "--batch")
    out = ask_bytes(top_of(folder), *words, folder=folder, stdin=lines)
    blobs: list[bytes | None] = []
    start = 0
    for _ in names:
        end = max(start, out.find(b"\n", start))
        head, start = out[start:end], end + 1
        if head.endswith(b" missing") or not head:
            blobs.append(None)
            continue
        _, kind, size = head.rsplit(b" ", 2)
        blobs.append(out[start : start + int(size)] if kind == b"blob" else None)
        start += int(size) + 1
    return blobs


def vouchers(folder: Path, path: str) -> list[Voucher]:
    """Return the vouchers for a file as HEAD has it; [] if nobody vouches for it.

    Nothing on disk is asked: not the file, not git's index with its bits (assume-unchanged,
    skip-worktree), no filter. Names are as in the commit: a repository's `.mailmap` could put one
    author's commits to another.

    The last one wrote the text; those before it renamed the file and changed nothing else. The
    oldest commit of a shallow clone, which seems to have written every file, vouches for none.
    """
    chain: list[Voucher] = []
    top = top_of(folder)
    if top is None:
        return []
    path = (folder.resolve().relative_to(top.resolve()) / path).as_posix()
    form = "--format=%H%x00%D%x00%an%x00%ae%x00%cn%x00%ce%x00"
    how = ("-1", "--decorate=full", "--no-ext-diff", "--full-diff", "-M100%", "--name-status")
    revision = "HEAD"
    for _ in range(MAX_RENAMES):
        record = ask_history(top, "log", *how, "-z", form, revision, "--", path, folder=top)
        if not record:
            return []
        commit, names, *people, changed = record.split("\0", 6)
        if {"grafted", "replaced"} & set(names.split(", ")):
            return []
        author, committer = (people[0], people[1]), (people[2], people[3])
        chain.append(Voucher(commit, path, author, committer))
        renames = (each for each in name_changes(changed) if each.status[0] == "R")
        before = next((each.before for each in renames if each.path == path), "")
        if not before:
            return chain
        revision, path = f"{commit}^", before
    return []
