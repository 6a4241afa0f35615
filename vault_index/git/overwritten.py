"""What a move of the checked-out branch would overwrite without git saying a word."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from vault_index.git.run import command

_ABSENT, _SUBMODULE = "000000", "160000"


@dataclass(frozen=True, slots=True)
class Overwritten:
    """A path from the top that would be lost, the reason, and what the user can do."""

    path: str
    reason: str
    hint: str


def overwritten_files(top: Path, old: str, new: str) -> Iterator[Overwritten]:
    """Yield what `git read-tree -m -u old new` would overwrite although it is not committed.

    That command refuses to lose what is modified, staged or untracked. It overwrites what git
    ignores, and brings back a file that was deleted without staging the deletion.
    """
    checkout = _Checkout(top)
    changes = list(_changes(top, old, new))
    removed = {path.casefold() for _, mode, path in changes if mode == _ABSENT}
    for was, becomes, path in changes:
        if becomes == _ABSENT:
            continue
        if was == _ABSENT and path.casefold() in removed and checkout.ignores_case:
            continue  # the same file: only the case of its name changes
        if was not in (_ABSENT, _SUBMODULE) and not os.path.lexists(top / path):
            if path not in checkout.left_out:
                yield Overwritten(
                    path,
                    "is deleted here and changed there",
                    f"commit the deletion, or git restore {path}, then lessons sync",
                )
        elif was in (_ABSENT, _SUBMODULE) and becomes != _SUBMODULE:
            blocking = checkout.blocking(path)
            if blocking:
                yield Overwritten(
                    blocking,
                    "is ignored by git here and committed there",
                    f"move {blocking} elsewhere, then lessons sync",
                )


@dataclass
class _Checkout:
    """The files of a working tree, as far as git knows them."""

    top: Path

    @cached_property
    def ignores_case(self) -> bool:
        """Whether the file system takes README.md and readme.md for the same file."""
        return command(self.top, "config", "--get", "core.ignorecase", check=False) == "true"

    @cached_property
    def tracked(self) -> set[str]:
        """The paths in git's index."""
        return {name for name in command(self.top, "ls-files", "-z").split("\0") if name}

    @cached_property
    def left_out(self) -> set[str]:
        """The paths that a sparse checkout leaves out."""
        listed = command(self.top, "ls-files", "-v", "-z").split("\0")
        return {line[2:] for line in listed if line[:1] in ("S", "s")}

    def blocking(self, path: str) -> str:
        """Return the untracked file where a new file belongs, or above or below it; "" for none."""
        above = [str(parent) for parent in Path(path).parents][-2::-1]
        for folder in above:
            place = self.top / folder
            if os.path.lexists(place) and (place.is_symlink() or not place.is_dir()):
                return "" if folder in self.tracked else folder
        place = self.top / path
        if place.is_dir() and not place.is_symlink():
            below = (
                str((Path(folder) / name).relative_to(self.top))
                for folder, folders, names in os.walk(place)
                for name in [
                    *names,
                    *(
                        folder_name
                        for folder_name in folders
                        if (Path(folder) / folder_name).is_symlink()
                    ),
                ]
            )
            return next((file for file in below if file not in self.tracked), "")
        return path if os.path.lexists(place) and path not in self.tracked else ""


def _changes(top: Path, old: str, new: str) -> Iterator[tuple[str, str, str]]:
    """Yield (mode before, mode after, path) of each file that two commits have in different ways."""
    raw = command(top, "diff-tree", "-r", "-z", "--raw", "--no-renames", old, new).split("\0")
    for entry, path in zip(raw[::2], raw[1::2], strict=False):
        before, after = entry.lstrip(":").split()[:2]
        yield before, after, path
