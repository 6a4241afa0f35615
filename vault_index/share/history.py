"""A vault as it was at a commit, and the history of a lesson."""

from __future__ import annotations

import itertools
import os
import shlex
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from vault_index import files, git
from vault_index.errors import GitError, GitUnavailableError, LessonError, VaultError
from vault_index.hotpath import index_files
from vault_index.lesson import parse
from vault_index.retrieval.hit import WholeEntry
from vault_index.vault import Vault, printable, shown


@dataclass(frozen=True, slots=True)
class LessonCommit:
    """A commit that changed a lesson. `when` is ISO 8601, `why` the commit's subject."""

    commit: str
    who: str
    when: str
    why: str


def log(vault: Vault, lesson_id: str, path: str, limit: int | None = None) -> list[LessonCommit]:
    """List the commits that changed a lesson, newest first; for a section only those that touched it.

    `path` is the lesson's file from the vault's root. Renames are followed. `limit` is how many
    commits of the file are looked at.
    """
    try:
        versions = list(itertools.islice(git.versions(vault.root, path), limit))
    except GitUnavailableError:
        raise
    except GitError:
        if not git.is_partial(vault.root):
            raise
        hint = f"git log -p -- {shlex.quote(path)}, which fetches it"
        raise VaultError(f"the history of {path} is not in this partial clone", hint) from None
    if "#" in lesson_id:
        slug = lesson_id.partition("#")[2]
        texts = [_section(version.content, version.path, slug) for version in versions]
        pairs = zip(versions, texts, [*texts, None][1:], strict=True)
        versions = [
            version
            for version, text, before in pairs
            if text != before or not version.content  # a partial clone lacks it
        ]
    return [LessonCommit(each.commit, each.name, each.when, each.subject) for each in versions]


def patch(vault: Vault, path: str, commit: str, limit: int) -> str:
    """Return the patch of a commit for a lesson's file; "" unless it is among the last `limit`.

    `path` and `limit` are as in `log`.
    """
    versions = itertools.islice(git.versions(vault.root, path), limit + 1)
    for version in versions:
        if version.commit == commit:
            before = next(versions, None)
            if before is not None:
                old = f"{before.commit}:{before.path}"
                return git.between(vault.root, old, f"{commit}:{version.path}")
            lines = version.content.decode("utf-8", "replace").splitlines()
            return "\n".join([f"@@ -0,0 +1,{len(lines)} @@", *(f"+{line}" for line in lines)])
    return ""


def deleted(vault: Vault, name: str) -> tuple[str, str, str] | None:
    """Find the lesson that was last deleted under a name: (commit, id, path); None without one.

    The commit is "" if HEAD still has it. The name is its path, with or without `.md`, or the end of
    it; `#section` for a section. A section may also be gone from a file that is there.
    """
    path, mark, section = name.strip().partition("#")
    wanted = "/" + path.removesuffix(".md").strip("/").removeprefix(f"{index_files.FOLDER}/")
    removed = ((commit, shown(below)) for commit, below in git.deleted(vault.lessons_dir))
    present = (("", shown(file.path)) for file in vault.files()[0])
    for commit, file in (*(present if mark else ()), *removed):
        id = parse.id_of(file.partition("/")[2])
        is_named = file.endswith(".md") and f"/{id}".endswith(wanted)
        if is_named and not (commit and os.path.lexists(vault.root / file)):
            lesson_id = f"{id}{mark}{section}"
            edits = log(vault, lesson_id, file) if mark else []
            last = next(git.versions(vault.root, file), None) if edits and not commit else None
            if last and _section(last.content, last.path, section) is None:
                commit = edits[0].commit
            if not mark or edits:
                return commit, lesson_id, file
    return None


def _section(content: bytes, path: str, slug: str) -> tuple[str, str] | None:
    try:
        lessons = parse.parse_file(content, path)
    except LessonError:
        return None
    return next(((each.title, each.text) for each in lessons if each.id.endswith(f"#{slug}")), None)


def signed(vault: Vault, commit: str, answer: Any) -> Any:
    """Return an answer of `at` in which a lesson has its author and date of that commit."""
    is_lesson = isinstance(answer, WholeEntry)
    if is_lesson and (by := git.provenance(vault.root, commit).get(answer.path)):
        return replace(answer, author=by.author, updated_at=datetime.fromisoformat(by.last))
    return answer


@contextmanager
def at(vault: Vault, revision: str, name: str = "") -> Iterator[tuple[Vault, str]]:
    """Make the vault as it was at a commit, tag or date, and remove it at the end; and name the commit.

    Its index is for `index.sync` to make. With the `name` of a lesson it has only the files in which the
    name stands, or whose path has it, and no vectors: to index all of them takes seconds. Raises
    VaultError for a name of no commit.
    """
    commit = git.resolve(vault.root, revision) or git.at_date(vault.root, revision)
    if not commit:
        hint = "name a commit, tag, branch or date: --at 2026-03-31"
        raise VaultError(f"no commit {revision!r}", hint)
    tree = git.tree(vault.lessons_dir, commit)
    if not tree:
        raise VaultError(f"there was no vault at {revision}", "choose a later commit")
    config = replace(vault.config, embedder="none") if name else vault.config
    with tempfile.TemporaryDirectory(prefix="lessons-at-") as folder:
        for path, data in _with_name(git.tree_files(vault.lessons_dir, tree), name):
            if path.startswith("/") or {"..", ".git"} & set(Path(path.casefold()).parts):
                # git fetches such a tree, but checks none out
                raise GitError(f"no file may have this name: {printable(path)}", "git fsck")
            file = Path(folder, vault.lessons_dir.name, path)
            with files.writing(file):
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(data)
        yield Vault(Path(folder), config), commit


def _with_name(tree_files: Iterable[tuple[str, bytes]], name: str) -> Iterator[tuple[str, bytes]]:
    """Yield the files that may have a lesson of a name: all of them if none has it."""
    wanted = name.partition("#")[0].removeprefix(f"{index_files.FOLDER}/").casefold()
    others = []
    has_name = not wanted
    for path, data in tree_files:
        is_lesson = path.endswith(".md")
        is_named = wanted in path.casefold() or wanted in data.decode("utf-8", "replace").casefold()
        has_name |= is_lesson and is_named
        if is_named or not is_lesson:
            yield path, data
        else:
            others.append((path, data))
    if not has_name:
        yield from others
