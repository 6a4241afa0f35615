"""Rename a branch of the category tree, in all files in one go: all of it or nothing."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vault_index import categories as tree
from vault_index import files, frontmatter_edit, injections, lesson
from vault_index.categories import CategoryPath
from vault_index.errors import ForeignIndexError, VaultError, WriteError

if TYPE_CHECKING:
    from vault_index.vault import Vault


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of a file. Paths are relative to the vault's folder."""

    path: str
    to: str  # the same path if only the frontmatter changes
    categories: tuple[CategoryPath, ...] | None  # as they will be declared; None: none are
    before: bytes | None = None  # the file as it is and as it will be; None: it only moves
    after: bytes | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What a rename would do. `skipped` are files that do not parse, with the reason."""

    old: CategoryPath
    new: CategoryPath
    changes: tuple[Change, ...]
    skipped: tuple[str, ...]


def plan(vault: Vault, old: str, new: str) -> Plan:
    """Find the files whose folder or frontmatter is in or below a category, and what would be of them.

    Whatever is in a folder of that name moves with it, pictures too; what frontmatter declares is
    rewritten, the rest of a file stays as it is. Raises VaultError for names that are no
    categories, a category below itself, nothing to move, a file that is in the way, and files that
    would move within, into or out of a git repository below the vault's folder.
    """
    before, after = tree.normalise(old), tree.normalise(new)
    for raw, said in ((old, before), (new, after)):
        if not said:
            raise VaultError(f"not a category: {raw!r}", "for example: devops/ci-cd")
    if before == after:
        raise VaultError(f"{old!r} and {new!r} are the same category: {before}")
    if after.startswith(f"{before}/"):
        raise VaultError(f"{before} cannot become {after}", "it would be below itself")
    if not tree.tells_something(after):
        raise VaultError(f"{after} is no category", "a folder of that name says nothing")
    changes: list[Change] = []
    skipped: list[str] = []
    lessons = {file.path for file in vault.files()[0]}
    for path in sorted(lessons | set(_beside(vault))):
        try:
            change = _change(vault, path, before, after, path in lessons)
        except VaultError as error:
            skipped.append(error.message)
            continue
        if change is None:
            continue
        try:
            for place in (change.path, change.to):
                files.refuse_other_repository((vault.folder / place).parent, vault.folder)
            changes.append(change)
        except VaultError as error:
            if change.to != change.path:
                raise
            skipped.append(f"{change.path}: {error.message}")
    if not any(change.path in lessons for change in changes):
        hint = "`lessons categories` shows the tree; what is only proposed stands in no file"
        raise VaultError(f"no lesson is in {before}", hint)
    _refuse_collisions(vault, changes)
    return Plan(before, after, tuple(_in_order(changes)), tuple(skipped))


def carry_out(vault: Vault, planned: Plan) -> None:
    """Do what a plan says. If a file cannot be changed, what was done is undone.

    Each file is compared with the plan again right before it is changed, and what somebody saves in
    between stays: a file saved since it moved is not moved back, and the error names it.

    Raises ChangedError if a file is not as it was for the plan, VaultError if another one is in its
    way, WriteError.
    """
    for change in planned.changes:
        if change.before is not None:
            files.refuse_changed(vault.folder / change.path, change.before)
    _refuse_collisions(vault, planned.changes)
    done: list[Change] = []
    try:
        for change in planned.changes:
            _put(vault, change)
            done.append(change)
    except BaseException as error:
        left = _undo(vault, done)
        if left and isinstance(error, VaultError):
            error.message += f"; saved since it was changed, so left as it is: {', '.join(left)}"
            error.args = (error.message,)
        raise
    moved = [one for one in done if one.to != one.path and one.to.endswith(".md")]
    with contextlib.suppress(ForeignIndexError):
        renamed = {lesson.id_of(one.path): lesson.id_of(one.to) for one in moved}
        injections.rename(vault.index_folder, renamed)


def _beside(vault: Vault) -> Iterator[str]:
    """Give the files that are no lessons, but may belong to some: pictures, for one."""
    for folder, folders, names in os.walk(vault.folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        inside = os.path.relpath(folder, vault.folder)
        if inside != ".":
            yield from (f"{inside}/{name}" for name in names if not name.startswith("."))


def _change(
    vault: Vault, path: str, old: CategoryPath, new: CategoryPath, is_lesson: bool
) -> Change | None:
    folder, _, name = path.rpartition("/")
    moved = _moved(folder, old, new)
    to = f"{moved}/{name}" if moved is not None else path
    if not is_lesson:
        return Change(path, to, None) if moved is not None else None
    data = files.read_file(vault.folder / path)
    metadata = frontmatter_edit.keys_of(data, path)
    key = "categories" if metadata.get("categories") is not None else "category"
    declared = lesson.parse_file(data, path)
    raw: Sequence[str] = declared[0].categories if declared else ()
    renamed = [_renamed(tree.normalise(one), old, new) for one in raw]
    if any(renamed):
        kept = [now or was for now, was in zip(renamed, raw, strict=True)]
        filed = tuple(dict.fromkeys(kept))
        value = list(filed) if isinstance(metadata.get(key), list) or len(filed) > 1 else filed[0]
        after = frontmatter_edit.set_keys(data, {key: value}, path)
        return Change(path, to, filed, data, after)
    return Change(path, to, None, data, data) if moved is not None else None


def _renamed(category: CategoryPath, old: CategoryPath, new: CategoryPath) -> CategoryPath | None:
    """Give what a category is called then; None if it is not in or below the old one."""
    if category == old:
        return new
    return new + category.removeprefix(old) if category.startswith(f"{old}/") else None


def _moved(folder: str, old: CategoryPath, new: CategoryPath) -> str | None:
    """Give what a folder is called then; what is below the old name stays as it is written."""
    if _renamed(tree.normalise(folder), old, new) is None:
        return None
    parts = folder.split("/")
    for count in range(1, len(parts) + 1):
        if tree.normalise("/".join(parts[:count])) == old:
            return "/".join([new, *parts[count:]])
    return None


def _refuse_collisions(vault: Vault, changes: Sequence[Change]) -> None:
    leaving = {change.path for change in changes if change.to != change.path}
    targets: dict[str, str] = {}
    for change in changes:
        if change.to == change.path:
            continue
        target = vault.folder / change.to
        files.refuse_links(target.parent, vault.root)
        taken = change.to not in leaving and os.path.lexists(target)
        if taken or targets.setdefault(change.to, change.path) != change.path:
            raise _in_the_way(change)


def _in_the_way(change: Change) -> VaultError:
    return VaultError(
        f"{change.path} cannot become {change.to}: that is there already",
        "rename one of them first",
    )


def _in_order(changes: Sequence[Change]) -> list[Change]:
    """Put a file that stands where another goes before that one. There are no circles.

    Each path becomes longer, or each becomes shorter, or goes into another branch.
    """
    ordered: list[Change] = []
    waiting = list(changes)
    while waiting:
        there = {change.path for change in waiting}
        free = [one for one in waiting if one.to == one.path or one.to not in there]
        ordered += free
        waiting = [one for one in waiting if one not in free]
    return ordered


def _put(vault: Vault, change: Change) -> None:
    """Rewrite and rename one file, or neither; folders left empty go."""
    old, new = vault.folder / change.path, vault.folder / change.to
    before, after = change.before, change.after
    if before is not None and after is not None:
        files.change_file(old, after, expected=before, within=vault.root)
    if old == new:
        return
    try:
        if not files.move_file(old, new, within=vault.root):
            raise _in_the_way(change)
    except BaseException:
        if before is not None and after is not None:
            with contextlib.suppress(WriteError):
                files.change_file(old, before, expected=after, within=vault.root)
        files.remove_empty(new.parent, vault.folder)
        raise
    files.remove_empty(old.parent, vault.folder)


def _undo(vault: Vault, done: Sequence[Change]) -> list[str]:
    """Take changes back, the last one first; return the paths of those that cannot be."""
    left: list[str] = []
    for change in reversed(done):
        try:
            _put(vault, Change(change.to, change.path, None, change.after, change.before))
        except VaultError:
            left.append(change.to)
    return left
