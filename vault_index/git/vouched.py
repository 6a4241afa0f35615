"""Who vouches for the text of a file: what git has of it, and who committed that.

Nothing on disk is asked: not the file, not git's index with its bits (assume-unchanged,
skip-worktree), no filter. Names are as in the commit: a repository's `.mailmap` could put one
author's commits to another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from vault_index.git.run import Repo, ask, ask_bytes, opened

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
