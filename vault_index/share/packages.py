"""The vaults of one repository: those around a vault, and folders with lessons that no vault takes.

A package of a monorepo may have a vault of its own. The nearest vault answers, and no other one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from vault_index import git
from vault_index.errors import GitError
from vault_index.features import VaultsTable
from vault_index.hotpath import index_files
from vault_index.retrieval import above
from vault_index.vault import FOLDER, Vault

MAX_FOLDERS = 1000  # that are looked into for lessons which git does not track yet
MAX_INSIDE = 200  # names in one of them, until a lesson is found
_NOT_SOURCES = frozenset("node_modules vendor target dist build out venv env __pycache__".split())
_ABOUT_A_FOLDER = ("readme", "changelog", "contributing", "license", "index")  # no lessons
_BELOW = f":(glob)**/{FOLDER}/**/*.md"


@dataclass(frozen=True, slots=True)
class OtherVaults:
    """Vaults around this one that it does not search, and folders that no vault takes, in full."""

    vaults_above: tuple[str, ...] = ()  # as the user's settings name them
    vaults_around: tuple[str, ...] = ()
    in_no_vault: tuple[str, ...] = ()


def state(vault: Vault) -> OtherVaults:
    """Return the status of other vaults and lessons in the repository."""
    return OtherVaults(
        vault.config[VaultsTable].above,
        tuple(str(root) for root in unsearched(vault)),
        tuple(str(folder) for folder in in_no_vault(vault.root)),
    )


def unsearched(vault: Vault) -> list[Path]:
    """Return the vaults around one, nearest first, that `vaults.above` does not name."""
    searched = {each.root for each in above.of(vault)}
    return [root for root in around(vault.root) if root not in searched]


def around(root: Path) -> list[Path]:
    """Return the vaults around the folder of a vault, nearest first.

    A work tree of the same repository does not count: it has the same lessons.
    """
    found: list[Path] = []
    here = Path(os.path.realpath(root)).parent
    with suppress(OSError):  # a disk above does not answer
        while named := index_files.around(str(here)):
            if not _is_worktree_of(root, outer := Path(named)):
                found.append(outer)
            if outer == outer.parent:
                break
            here = outer.parent
    return found


def _is_worktree_of(root: Path, outer: Path) -> bool:
    tops = [git.top_of(folder) for folder in (root, outer)]
    if tops[0] == tops[1] or None in tops:
        return False
    shared = {
        os.path.realpath(git.common_folder(top) or git.git_folder(top)) for top in tops if top
    }
    return len(shared) == 1


def in_no_vault(root: Path) -> list[Path]:
    """Return the folders `lessons` in the repository of a vault that hold lessons, and no vault takes.

    Git names those that it tracks, at any depth. For others few folders are looked into, the upper
    ones first, and none with packages or what a build made.
    """
    top = git.top_of(root) or Path(os.path.realpath(root))
    new = [folder for folder in _looked_for(top) if _has_lessons(folder)]
    with suppress(GitError):  # the repository's line in status says why git does not answer
        paths = {str(folder.relative_to(top)): folder for folder in new}
        ignored = git.ignored(top, paths) if git.top_of(root) else set()
        new = [folder for path, folder in paths.items() if path not in ignored]
    return sorted({*_tracked(top), *new})


def _tracked(top: Path) -> Iterator[Path]:
    excluded = [f":(exclude){FOLDER}"] if _is_taken(top / FOLDER) else []
    words = ("--no-literal-pathspecs", "ls-files", "-z", "--", _BELOW, *excluded)
    listed = ""
    with suppress(GitError):
        listed = git.ask(git.top_of(top), *words)
    paths = (path for path in listed.split("\0") if _may_be_lesson(path))
    for folder in dict.fromkeys(_outermost(path) for path in paths):
        package = top / folder
        if os.path.isdir(package) and not package.is_symlink() and not _is_taken(package):  # noqa: PTH112  # `Path.is_dir` raises where the folder above cannot be searched
            yield package


def _outermost(path: str) -> str:
    """Return the path of the folder `lessons` that a file is in, of several the outer one."""
    parts = path.split("/")
    return "/".join(parts[: parts.index(FOLDER) + 1])


def _looked_for(top: Path) -> Iterator[Path]:
    """Yield folders `lessons` that no vault takes, from the top down."""
    pending, looked = [top], 0
    while pending and looked < MAX_FOLDERS:
        below: list[Path] = []
        for folder in islice(pending, MAX_FOLDERS - looked):
            looked += 1
            for entry in _folders_in(folder):
                if entry.name != FOLDER:
                    below.append(Path(entry.path))
                elif not _is_taken(Path(entry.path)):
                    yield Path(entry.path)
        pending = below


def _folders_in(folder: Path) -> Iterable[os.DirEntry[str]]:
    """Return the folders in one, by name; none of a repository of its own, such as a submodule."""
    with suppress(OSError), os.scandir(folder) as entries:
        named = [each for each in entries if each.name not in _NOT_SOURCES and each.name[0] != "."]
        inside = [each for each in named if each.is_dir(follow_symlinks=False)]
        return sorted(
            (each for each in inside if not os.path.lexists(f"{each.path}/.git")),
            key=lambda each: each.name,
        )
    return []


def _is_taken(folder: Path) -> bool:
    with suppress(OSError):  # a disk does not answer
        return index_files.is_vault(str(folder))
    return True


def _has_lessons(folder: Path) -> bool:
    names = (name for _, _, files in os.walk(folder) for name in files)
    return any(map(_may_be_lesson, islice(names, MAX_INSIDE)))


def _may_be_lesson(path: str) -> bool:
    name = path.rpartition("/")[2]
    stem, dot, ending = name.rpartition(".")
    return f"{dot}{ending}" == ".md" and stem.lower() not in _ABOUT_A_FOLDER and stem[0] != "."
