"""Rename a branch of the category tree, in all files in one go: all of it or nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from vault_index import categories as tree
from vault_index import frontmatter_edit, lesson, manifest
from vault_index.categories import CategoryPath
from vault_index.errors import LessonError, VaultError

if TYPE_CHECKING:
    from vault_index.vault import Vault


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of a file. Paths are relative to the vault's folder."""

    path: str
    to: str  # the same path if only the frontmatter changes
    categories: tuple[CategoryPath, ...] | None  # as they will be declared; None: none are
    data: bytes  # the file as it will be


@dataclass(frozen=True, slots=True)
class Plan:
    """What a rename would do. `skipped` are files that do not parse, with the reason."""

    old: CategoryPath
    new: CategoryPath
    changes: tuple[Change, ...]
    skipped: tuple[str, ...]


def plan(vault: Vault, old: str, new: str) -> Plan:
    """Find the files whose folder or frontmatter is in or below a category, and what would be of them.

    A file in a folder of that name moves with it; what its frontmatter declares is rewritten, the
    rest of the file stays as it is, to the byte. Raises VaultError for names that are no categories,
    a category below itself, nothing to move, and a file that is in the way.
    """
    before, after = tree.normalise(old), tree.normalise(new)
    for raw, said in ((old, before), (new, after)):
        if not said:
            raise VaultError(f"not a category: {raw!r}", "for example: devops/ci-cd")
    if before == after or after.startswith(f"{before}/"):
        raise VaultError(f"{before} cannot become {after}", "it would be in or below itself")
    changes: list[Change] = []
    skipped: list[str] = []
    files = vault.files()[0]
    for file in files:
        try:
            change = _change(vault, file.path, before, after)
        except LessonError as error:
            skipped.append(str(error))
            continue
        if change is not None:
            changes.append(change)
    if not changes:
        raise VaultError(f"no lesson is in {before}", "`lessons categories` shows the tree")
    _refuse_collisions(changes, {file.path for file in files}, vault)
    return Plan(before, after, tuple(changes), tuple(skipped))


def carry_out(vault: Vault, planned: Plan) -> None:
    """Do what a plan says. If a file cannot be written, what was done is undone. Raises WriteError."""
    done: list[tuple[Change, bytes]] = []
    try:
        for change in planned.changes:
            file = vault.folder / change.path
            with manifest.writing(file):
                before = file.read_bytes()
                done.append((change, before))
                _put(vault, change.path, change.to, change.data)
    except BaseException:
        for change, before in reversed(done):
            with contextlib.suppress(OSError):
                _put(vault, change.to, change.path, before)
        raise


def _change(vault: Vault, path: str, old: str, new: str) -> Change | None:
    data = (vault.folder / path).read_bytes()
    metadata = frontmatter_edit.keys_of(data, path)
    folder, _, name = path.rpartition("/")
    moved = _renamed(tree.normalise(folder), old, new)
    to = f"{moved}/{name}" if moved is not None else path
    key = "categories" if metadata.get("categories") is not None else "category"
    declared = lesson.parse_file(data, path)
    raw: Sequence[str] = declared[0].categories if declared else ()
    renamed = [_renamed(tree.normalise(one), old, new) for one in raw]
    if moved is None and not any(renamed):
        return None
    if not any(renamed):
        return Change(path, to, None, data)
    kept = [now or was for now, was in zip(renamed, raw, strict=True)]
    filed = tuple(dict.fromkeys(kept))
    value = list(filed) if isinstance(metadata.get(key), list) or len(filed) > 1 else filed[0]
    return Change(path, to, filed, frontmatter_edit.set_keys(data, {key: value}, path))


def _renamed(category: CategoryPath, old: CategoryPath, new: CategoryPath) -> CategoryPath | None:
    """Give what a category is called then; None if it is not in or below the old one."""
    if category == old:
        return new
    return new + category.removeprefix(old) if category.startswith(f"{old}/") else None


def _refuse_collisions(changes: Sequence[Change], there: set[str], vault: Vault) -> None:
    leaving = {change.path for change in changes if change.to != change.path}
    targets: dict[str, str] = {}
    for change in changes:
        if change.to == change.path:
            continue
        taken = change.to in there - leaving or (vault.folder / change.to).exists()
        other = targets.setdefault(change.to, change.path)
        if (taken and change.to not in leaving) or other != change.path:
            raise VaultError(
                f"{change.path} cannot become {change.to}: that is there already",
                "rename one of them first",
            )


def _put(vault: Vault, path: str, to: str, data: bytes) -> None:
    """Write a file, at another place if need be; the old one and folders left empty go."""
    old, new = vault.folder / path, vault.folder / to
    if old == new:
        manifest.replace_file(new, data, keep_mode=True)
        return
    new.parent.mkdir(parents=True, exist_ok=True)
    old.rename(new)
    if new.read_bytes() != data:
        manifest.replace_file(new, data, keep_mode=True)
    manifest.remove_empty(Path(old.parent), vault.folder)
