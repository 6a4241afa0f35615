"""Change categories in lesson files: rename a branch of their tree, or write accepted ones."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vault_index import files
from vault_index.errors import VaultError, WriteError
from vault_index.lesson import edits, parse
from vault_index.lesson.category import CategoryPath, checked, checked_folder, normalise
from vault_index.lesson.file import LessonFile
from vault_index.lesson.frontmatter import own_of
from vault_index.store import injections
from vault_index.vault import Vault


@dataclass(frozen=True, slots=True)
class CategoryChange:
    """The change of a file. Paths are relative to the vault's folder."""

    path: str
    to: str  # the same path if only the frontmatter changes
    categories: tuple[CategoryPath, ...] | None  # as they will be declared; None: none are
    before: bytes | None = None  # the file as it is and as it will be; None: it only moves
    after: bytes | None = None


@dataclass(frozen=True, slots=True)
class RenamePlan:
    """The plan of a rename. `skipped` are files that do not parse, with the reason."""

    old: CategoryPath
    new: CategoryPath
    changes: tuple[CategoryChange, ...]
    skipped: tuple[str, ...]


def plan(vault: Vault, old: str, new: str) -> RenamePlan:
    """List the files that a rename of a category would touch, and the change of each.

    Whatever is in a folder of that name moves with it, pictures too; frontmatter is rewritten. Raises
    VaultError for names that are no categories, a category below itself, nothing to move, a file in
    the way, and a move that touches a git repository below the vault's folder.
    """
    before, after = checked(old), checked_folder(new)
    if before == after:
        same = f"{old!r} and {new!r} are the same category: {before}"
        raise VaultError(same, "name another category")
    if after.startswith(f"{before}/"):
        raise VaultError(f"{before} cannot become {after}", "choose a name that is not below it")
    changes: list[CategoryChange] = []
    skipped: list[str] = []
    lessons = {file.path for file in vault.files()[0]}
    for path in sorted(lessons | set(_beside(vault))):
        change = None
        try:
            change = _change(vault, path, before, after, path in lessons)
            for target in (change.path, change.to) if change else ():
                files.refuse_other_repository(
                    (vault.lessons_dir / target).parent, vault.lessons_dir
                )
        except VaultError as error:
            if change and change.to != change.path:
                raise
            skipped.append(f"{change.path}: {error.message}" if change else error.message)
        else:
            changes += [change] if change else []
    if not any(change.path in lessons for change in changes):
        hint = "see the tree with `lessons categories`; proposed categories are in no file yet"
        raise VaultError(f"no lesson is in {before}", hint)
    _refuse_collisions(vault, changes)
    return RenamePlan(before, after, tuple(_in_order(changes)), tuple(skipped))


def move(vault: Vault, path: str, category: str) -> CategoryChange:
    """Move the file of a lesson, relative to the vault's folder, into a category and return the change.

    A first category that its frontmatter declares becomes the new one. Raises VaultError for a file of
    several lessons and for what `plan` refuses.
    """
    filed = checked_folder(category)
    data = files.read_file(vault.lessons_dir / path)
    lessons = parse.parse_file(data, path)
    if len(lessons) > 1:
        hint = f"lessons edit {parse.id_of(path)}"
        raise VaultError(f"{path} has {len(lessons)} lessons, which move together", hint)
    target = vault.place_for(filed, path.rpartition("/")[2].removesuffix(".md"))
    to = target.relative_to(vault.lessons_dir).as_posix()
    if to == path:
        raise VaultError(f"{path} is in {filed} already", "name another category")
    declared = lessons[0].categories if lessons else ()
    names = tuple(dict.fromkeys((filed, *declared[1:]))) if declared else None
    after = (
        edits.set_keys(data, {"category": None, "categories": list(names)}, path) if names else data
    )
    change = CategoryChange(path, to, names, data, after)
    for each in (path, to):
        files.refuse_other_repository((vault.lessons_dir / each).parent, vault.lessons_dir)
    apply(vault, RenamePlan(filed, filed, (change,), ()))
    return change


def apply(vault: Vault, planned: RenamePlan) -> None:
    """Apply a plan. If a file cannot be changed, all changes are undone.

    Each file is compared with the plan right before it is changed, so a save in between stays. Raises
    ChangedError for such a file, VaultError if another is in its way, WriteError.
    """
    for change in planned.changes:
        if change.before is not None:
            files.refuse_changed(vault.lessons_dir / change.path, change.before)
    _refuse_collisions(vault, planned.changes)
    applied: list[CategoryChange] = []
    try:
        for change in planned.changes:
            _put(vault, change)
            applied.append(change)
    except BaseException as error:
        unrestored = _undo(vault, applied)
        if unrestored and isinstance(error, VaultError):
            error.message += (
                f"; saved since it was changed, so left as it is: {', '.join(unrestored)}"
            )
            error.args = (error.message,)
        raise
    moved = [change for change in applied if change.to != change.path and change.to.endswith(".md")]
    renamed = {parse.id_of(change.path): parse.id_of(change.to) for change in moved}
    injections.rename(vault.config.home, vault.root, renamed)


def _beside(vault: Vault) -> Iterator[str]:
    for folder, folders, names in os.walk(vault.lessons_dir):
        folders[:] = [name for name in folders if not name.startswith(".")]
        inside = os.path.relpath(folder, vault.lessons_dir)
        if inside != ".":
            yield from (f"{inside}/{name}" for name in names if not name.startswith("."))


def _change(
    vault: Vault, path: str, old: CategoryPath, new: CategoryPath, is_lesson: bool
) -> CategoryChange | None:
    folder, _, name = path.rpartition("/")
    moved = _moved(folder, old, new)
    target = vault.place(f"{moved}/{name}") if moved is not None else None
    to = target.relative_to(vault.lessons_dir).as_posix() if target else path
    if not is_lesson:
        return CategoryChange(path, to, None) if moved is not None else None
    data = files.read_file(vault.lessons_dir / path)
    metadata = edits.keys_of(data, path)
    parse.parse_file(data, path)  # never edit what cannot be read back
    declared, keys = _filed_anew(metadata, old, new)
    after = edits.set_keys(data, keys, path) if keys else data
    file = LessonFile.of(data, path)
    for slug, section in parse.slugs_of(file):
        further, keys = _filed_anew(own_of(file, section), old, new)
        if keys:
            after = edits.set_own_keys(after, slug, keys, path)
            declared = list(dict.fromkeys([*declared, *further]))
    if after != data:
        return CategoryChange(path, to, tuple(declared), data, after)
    return CategoryChange(path, to, None, data, data) if moved is not None else None


def _filed_anew(
    metadata: Mapping[Any, Any], old: CategoryPath, new: CategoryPath
) -> tuple[list[CategoryPath], dict[str, Any]]:
    """Return the categories after a rename and the key to write, both empty where none is renamed."""
    key = "categories" if metadata.get("categories") is not None else "category"
    raw = parse.words(metadata.get(key))
    renamed = [_renamed(normalise(category), old, new) for category in raw]
    if not any(renamed):
        return [], {}
    filed = list(dict.fromkeys(now or was for now, was in zip(renamed, raw, strict=True)))
    is_list = isinstance(metadata.get(key), list) or len(filed) > 1
    return filed, {key: filed if is_list else filed[0]}


def _renamed(category: CategoryPath, old: CategoryPath, new: CategoryPath) -> CategoryPath | None:
    if category == old:
        return new
    return new + category.removeprefix(old) if category.startswith(f"{old}/") else None


def _moved(folder: str, old: CategoryPath, new: CategoryPath) -> str | None:
    if _renamed(normalise(folder), old, new) is None:
        return None
    parts = folder.split("/")
    for count in range(1, len(parts) + 1):
        if normalise("/".join(parts[:count])) == old:
            return "/".join([new, *parts[count:]])
    return None


def _refuse_collisions(vault: Vault, changes: Sequence[CategoryChange]) -> None:
    leaving = {change.path for change in changes if change.to != change.path}
    targets: dict[str, str] = {}
    for change in changes:
        if change.to == change.path:
            continue
        target = vault.lessons_dir / change.to
        files.refuse_links(target.parent, vault.root)
        is_taken = change.to not in leaving and os.path.lexists(target)
        if is_taken or targets.setdefault(change.to, change.path) != change.path:
            raise _in_the_way(change)


def _in_the_way(change: CategoryChange) -> VaultError:
    message = f"{change.path} cannot become {change.to}: that is there already"
    return VaultError(message, "rename one of them first")


def _in_order(changes: Sequence[CategoryChange]) -> list[CategoryChange]:
    """Put a file whose place another takes before that one. There are no circles."""
    ordered: list[CategoryChange] = []
    waiting = list(changes)
    while waiting:
        leaving = {change.path for change in waiting if change.to != change.path}
        ordered += [change for change in waiting if change.to not in leaving]
        waiting = [change for change in waiting if change.to in leaving]
    return ordered


def _put(vault: Vault, change: CategoryChange) -> None:
    """Rewrite and rename one file, or neither; folders left empty go."""
    old, new = vault.lessons_dir / change.path, vault.lessons_dir / change.to
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
        files.remove_empty(new.parent, vault.lessons_dir)
        raise
    files.remove_empty(old.parent, vault.lessons_dir)


def _undo(vault: Vault, applied: Sequence[CategoryChange]) -> list[str]:
    unrestored: list[str] = []
    for change in reversed(applied):
        try:
            _put(vault, CategoryChange(change.to, change.path, None, change.after, change.before))
        except VaultError:
            unrestored.append(change.to)
    return unrestored
