"""What commits say: who wrote each lesson and when, and what files were at a commit."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from vault_index.errors import GitError
from vault_index.git.run import Repo, ask, ask_bytes, command, opened

_AS_PUSHED = "--no-replace-objects"  # a push sends the object that another one replaces here
SUBMODULE = "160000"  # the mode of a path that is a commit of another repository


@dataclass(frozen=True, slots=True)
class Provenance:
    """Who last changed a file, and its first and last commit (ISO 8601 dates of the author)."""

    author: str
    first: str
    last: str


@dataclass(frozen=True, slots=True)
class Change:
    """Who made a commit."""

    name: str
    email: str
    when: str  # ISO 8601


@dataclass(frozen=True, slots=True)
class Version:
    """A file as a commit left it, and who made that, when (ISO 8601) and why."""

    commit: str
    name: str
    when: str
    subject: str
    path: str
    content: bytes


def history(
    folder: Path, head: str = "HEAD", since: str | None = None
) -> dict[str, Provenance] | None:
    """Walk `git log` once and return the provenance of each committed file below a folder.

    Keys are paths relative to the folder, renames followed. `head` is the commit to walk from, and
    not what is checked out by the time git looks. With `since`, only files that commits after it
    touched are returned, their `first` being the first after it. None if that cannot tell what a
    whole walk would: `since` is no ancestor, or what came after it has merges or renames.
    """
    with opened(folder) as repo:
        if repo is None:
            return {}
        if since and ask(repo, "merge-base", since, head) != since:
            return None
        if since and ask(repo, "rev-list", "--min-parents=2", "-1", f"{since}..{head}"):
            return None
        prefix = ask(repo, "-C", str(folder), "rev-parse", "--show-prefix")
        log = ask(
            repo,
            *(
                "log",
                "-M",
                "--name-status",
                "-z",
                f"--relative={prefix}",
                "--format=%x01%aN%x02%aI",
            ),
            f"{since}..{head}" if since else head,
            *("--", prefix or "."),
        )
    found, has_renames = _provenance(log)
    return None if since and has_renames else found


def last_change(folder: Path, path: str, revision: str = "HEAD") -> Change | None:
    """Return who last changed a file in the commits of a revision; None if nobody did."""
    with opened(folder) as repo:
        if repo is None:
            return None
        form = "--format=%aN%x00%aE%x00%aI"
        line = ask(repo, "-C", str(folder), "log", "-1", form, revision, "--", path)
    name, email, when = line.split("\0") if line else [""] * 3
    return Change(name, email, when) if line else None


def versions(folder: Path, path: str) -> Iterator[Version]:
    """Return each version of a file that commits of HEAD have, newest first; renames are followed.

    Of merges those that somebody had to think about: with lines that no side had so.
    """
    with opened(folder) as repo:
        if repo is None:
            return
        form = "--format=%x01%H%x02%P%x02%aN%x02%aI%x02%s"
        options = ("-c", "--follow", "--name-only", "-z", form, "--no-ext-diff")
        log = ask(repo, "-C", str(folder), "log", *options, "--", path)
        commits: list[tuple[list[str], str]] = []  # what is said of a commit, the file's path there
        fields: list[str] = []
        for entry in log.split("\0"):
            if entry.startswith("\x01"):
                fields = entry[1:].split("\x02", 4)
            elif entry.strip("\n"):  # a merge in which the file is that of a side names none
                commits.append((fields, entry.lstrip("\n")))
        paths = sorted({path_then for _, path_then in commits})
        for (commit, parents, name, when, subject), path_then in commits:
            if " " in parents:
                patch = (
                    "--cc",
                    "-M",
                    "-U0",
                    "--no-ext-diff",
                    "--no-textconv",
                    "--no-commit-id",
                    "-p",
                )
                if not ask(repo, "diff-tree", *patch, commit, "--", *paths):
                    continue
            content = ask_bytes(repo, "cat-file", "blob", f"{commit}:{path_then}")
            yield Version(commit, name, when, subject.strip(), path_then, content)


def deleted(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield (commit, path) of each file below a folder that a commit of HEAD deleted, newest first.

    Paths are relative to the folder; a rename does not count as a deletion.
    """
    with opened(folder) as repo:
        if repo is None:
            return
        prefix = ask(repo, "-C", str(folder), "rev-parse", "--show-prefix")
        options = ("-M", "--diff-filter=D", "--name-only", "-z", "--format=%x01%H")
        log = ask(repo, "log", *options, f"--relative={prefix}", "--", prefix or ".")
    commit = ""
    for entry in log.split("\0"):
        text = entry.lstrip("\n")
        if text.startswith("\x01"):
            commit = text[1:].strip()
        elif text:
            yield commit, text


def resolve(folder: Path, revision: str) -> str:
    """Return the commit (40 hexadecimal digits) that a revision names, "" if none."""
    name = ("--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    return command(folder, "rev-parse", *name, check=False).removeprefix("--end-of-options\n")


def count(folder: Path, *commits: str) -> int:
    """Count commits, named as for `git rev-list`: `a..b`, or `a --not b`."""
    return int(command(folder, "rev-list", "--count", *commits, "--", check=False) or 0)


def at_date(folder: Path, date: str) -> str:
    """Return the last commit of HEAD before the end of a date such as 2026-03-31, "" if there is none."""
    from datetime import datetime

    try:
        datetime.fromisoformat(date)
    except ValueError:
        return ""
    end = f"{date} 23:59:59" if len(date) == 10 else date
    return command(folder, "rev-list", "-1", f"--before={end}", "HEAD", "--", check=False)


def tree(folder: Path, commit: str) -> str:
    """Return the hash of what a folder held at a commit, "" if it was not there."""
    prefix = command(folder, "rev-parse", "--show-prefix", check=False)
    name = f"{commit}:{prefix.rstrip('/')}"
    return command(folder, "rev-parse", "--verify", "--quiet", name, check=False)


def archive(folder: Path, commit: str) -> bytes:
    """Return what a folder held at a commit, as a tar archive."""
    with opened(folder) as repo:
        prefix = command(folder, "rev-parse", "--show-prefix", check=False)
        name = f"{commit}:{prefix.rstrip('/')}"
        return ask_bytes(repo, "archive", "--format=tar", name) if repo else b""


def outgoing(
    folder: Path, commits: Sequence[str], wanted: Callable[[str], bool]
) -> Iterator[tuple[str, str, bytes]]:
    """Yield each version of a wanted file that some commits made, as for `git rev-list`.

    As (commit, path from the repository's top, content); what a path holds is yielded once. Nothing
    of this may be missed: raises GitError where git does not answer.
    """
    with opened(folder) as repo:
        if repo is None:
            return
        # no path is named: git would leave out side branches that came to nothing in the end
        log = ask(
            repo,
            *(_AS_PUSHED, "-c", "log.showRoot=true", "-c", "log.diffMerges=separate"),
            *("log", "--raw", "-z", "--no-abbrev", "--no-renames", "--diff-filter=AMT", "-m"),
            *("--format=%x01%H", *commits, "--"),
        )
        if not log and count(folder, *commits):
            raise GitError("git log: the commits to push could not be read", "git fsck")
        seen: set[tuple[str, str]] = set()
        commit = ""
        fields = iter(log.split("\0"))
        for entry in fields:
            text = entry.strip("\n")
            if text.startswith("\x01"):
                commit, _, text = text[1:].partition("\n")
                text = text.strip("\n")
            if not text.startswith(":"):
                continue
            path, (_, mode, _, blob) = next(fields, ""), text.split()[:4]
            if wanted(path) and mode != SUBMODULE and (path, blob) not in seen:
                seen.add((path, blob))
                yield commit, path, _content(repo, blob)


def messages(folder: Path, commits: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield (commit, message) of some commits. Raises GitError where git does not answer."""
    for commit in commits:
        message = command(
            folder, _AS_PUSHED, "log", "-1", "--no-show-signature", "--format=%B", commit, "--"
        )
        yield commit, message


def _content(repo: Repo, blob: str) -> bytes:
    content = ask_bytes(repo, _AS_PUSHED, "cat-file", "blob", blob)
    if not content and ask(repo, _AS_PUSHED, "cat-file", "-s", blob) != "0":
        raise GitError(f"git cat-file: {blob[:10]} could not be read", "git fsck")
    return content


def _provenance(log: str) -> tuple[dict[str, Provenance], bool]:
    """Read the output of `git log --name-status -z`, newest commit first; and whether it has renames."""
    by_name: dict[str, Provenance] = {}
    today: dict[str, str] = {}  # a path's name back then -> its name now
    author = when = ""
    fields = iter(log.split("\0"))
    for entry in fields:
        text = entry.lstrip("\n")
        if text.startswith("\x01"):
            author, _, when = text[1:].partition("\x02")
            continue
        if not text:
            continue
        path = next(fields, "")
        if text[0] in "RC":
            older, path = path, next(fields, "")
            if text[0] == "R":
                today[older] = today.get(path, path)
        name = today.get(path, path)
        newest = by_name.get(name, Provenance(author, when, when))
        by_name[name] = Provenance(newest.author, when, newest.last)
    return by_name, bool(today)


# Who vouches for the text of a file: what git has of it, and who committed that.
#
# Nothing on disk is asked: not the file, not git's index with its bits (assume-unchanged,
# skip-worktree), no filter. Names are as in the commit: a repository's `.mailmap` could put one
# author's commits to another.

MAX_RENAMES = 10  # that are followed back to who wrote the text


@dataclass(frozen=True, slots=True)
class Voucher:
    """A commit that changed a file; `key` is a valid signature's fingerprint, or "".

    `author` and `committer` are (name, address) as the commit says: whoever made it chose both.
    """

    commit: str
    path: str  # of the file in that commit
    author: tuple[str, str]
    committer: tuple[str, str]
    when: str  # ISO 8601
    key: str


def contents(folder: Path, files: Mapping[str, tuple[str, str]]) -> dict[str, bytes]:
    """Return what commits have of files: `files` are (commit, path from the folder), by any name.

    What a commit does not have is left out. One run of git for all of them.
    """
    import tempfile

    # a line is a question, so a path with a line end in it could ask for another file
    asked = {name: place for name, place in files.items() if "\n" not in place[1]}
    with opened(folder) as repo, tempfile.TemporaryFile() as questions:
        if repo is None or not asked:
            return {}
        lines = [f"{commit}:./{path}\n" for commit, path in asked.values()]
        questions.write("".join(lines).encode("utf-8", "surrogateescape"))
        questions.seek(0)
        out = ask_bytes(repo, "-C", str(folder), "cat-file", "--batch", stdin=questions)
    by_name: dict[str, bytes] = {}
    for name in asked:
        head, _, rest = out.partition(b"\n")
        if head.endswith(b" missing") or not head:
            out = rest
            continue
        _, kind, size = head.rsplit(b" ", 2)
        data, out = rest[: int(size)], rest[int(size) + 1 :]
        if kind == b"blob":
            by_name[name] = data
    return by_name


def vouchers(folder: Path, path: str, *, signature: bool = False) -> list[Voucher]:
    """Return the vouchers for a file as HEAD has it; [] if there are none.

    The last one wrote the text; those before it renamed the file and changed nothing else. The
    oldest commit of a shallow clone, which seems to have written every file, vouches for none.
    """
    chain: list[Voucher] = []
    with opened(folder) as repo:
        if repo is None:
            return []
        top = repo.top.resolve()
        path = (folder.resolve().relative_to(top) / path).as_posix()
        revision = "HEAD"
        for _ in range(MAX_RENAMES):
            last, older = _last(repo, revision, path, signature)
            if last is None:
                return []
            chain.append(last)
            if not older:
                return chain
            revision, path = f"{last.commit}^", older
    return []


def _last(repo: Repo, revision: str, path: str, signature: bool) -> tuple[Voucher | None, str]:
    """Return the last commit of a revision that changed a file, and the file's path before it.

    That is "" unless the commit only renamed the file.
    """
    signed = "%G?%x00%GF" if signature else "%x00"
    form = f"--format=%H%x00%D%x00%an%x00%ae%x00%cn%x00%ce%x00%aI%x00{signed}%x00"
    options = (
        "log",
        "-1",
        "--decorate=full",
        "--no-ext-diff",
        "--full-diff",
        "-M100%",
        "--name-status",
    )
    record = ask(repo, "-C", str(repo.top), *options, "-z", form, revision, "--", path)
    if not record:
        return None, ""
    commit, names, *people, when, state, key, changed = record.split("\0", 9)
    if {"grafted", "replaced"} & set(names.split(", ")):
        return None, ""
    # G: valid, U: of somebody whom gpg has no opinion on
    author, committer = (people[0], people[1]), (people[2], people[3])
    key = key if state in ("G", "U") else ""
    made = Voucher(commit, path, author, committer, when, key)
    return made, _renamed(changed.split("\0")).get(path, "")


def _renamed(changed: list[str]) -> dict[str, str]:
    """Read the output of `git log --name-status -z` into new path -> old path."""
    renamed: dict[str, str] = {}
    fields = iter(changed)
    for field in fields:
        status = field.strip()
        if status.startswith("R"):
            older = next(fields, "")
            renamed[next(fields, "")] = older
        elif status:
            next(fields, "")
    return renamed
