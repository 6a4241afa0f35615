"""Which project a folder belongs to, whose sessions are recorded, and a vault's private folders.

A project has a name, the first commit of its repository, and the folders where it was seen: its work
tree, the tops of others. All work trees of a repository are one project, and so is every folder in them.
A clone that was moved or renamed stays the project by its first commit, and so does a second clone of the
same address; a fork or another project made from the same template is one of its own, like any other of
that name. A folder that is gone belongs to the project that was seen there or in a folder above it.

A user's private files about a vault, such as proposals, are outside of it and of its index:

    ~/.lessons/<kind>/<project>/<vault>/   0700, like all below it; files are 0600

`<vault>` is the vault's place in the repository, `vault` at its top. All work trees and clones of one
repository share the folder, also after a move.
"""

from __future__ import annotations

import functools
import json
import os
import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath

from vault_index import files, git, state
from vault_index.errors import GitError, VaultError, unreadable
from vault_index.hotpath import spool
from vault_index.journal.journal import Journal, held
from vault_index.vault import refuse_breaks

RECORDED, ALL, _NOT = spool.RECORDED, spool.EVERYTHING, spool.NEVER  # hooks read the file, too
PROPOSALS = "proposals"  # the folder of drafts in the user's
UNSAFE = re.compile(r"[^\w.-]+")
_MAX_NAME = 60  # characters
EVERYWHERE = "all"  # names no project, but all of them
# where agents put the work trees of a repository: /home/me/shop/.claude/worktrees/calm-otter-1a2b3c
_WORK_TREE = re.compile(
    r"(.+?)/\.(?:claude|cursor|gemini)/worktrees/[^/]+\Z|(.+/\.claude-worktrees/[^/]+)/[^/]+\Z"
)
MAX_NAMED = 8  # projects, in an error


@dataclass(frozen=True, slots=True)
class Project:
    """A project. `root` is the first commit of its repository, "" without one."""

    name: str
    root: str = ""
    folders: tuple[str, ...] = ()


def projects(home: Path) -> list[Project]:
    """Return the projects of this user, by name."""
    with state.reading(home) as db:
        return _projects(db)


def _projects(db: sqlite3.Connection) -> list[Project]:
    rows = db.execute("SELECT name, root, folders FROM project ORDER BY name")
    return [Project(name, root, tuple(json.loads(folders))) for name, root, folders in rows]


def project_of(home: Path, folder: str) -> str:
    """Return the name of a folder's project, which is made if it is missing. Raises WriteError."""
    top = _top_of(folder)
    for project in projects(home):
        if top in project.folders and (project.root or not _root_if_read(top)):
            return project.name
    with state.writing(home) as db:
        return _joined(db, top)


def find_project(home: Path, folder: str) -> str:
    """Return the name of a folder's project; "" if nothing of it was kept yet. Writes nothing."""
    existing, top = projects(home), _top_of(folder)
    project = _seen_at(existing, top) or _moved_to(existing, top, _root_if_read(top))
    return project.name if project else ""


def choose(journal: Journal, name: str, folder: str = "", others: Iterable[str] = ()) -> str | None:
    """Return the project that a name or a folder means, "" for all; None for a folder without any.

    Raises VaultError, with the right names, for a name that neither a project nor one of the others has.
    """
    if not name:
        return (find_project(journal.home, folder) or None) if folder else ""
    names = sorted({*others, *(each.name for each in projects(journal.home))})
    if name == EVERYWHERE or name in names:
        return "" if name == EVERYWHERE else name
    from difflib import get_close_matches  # an error alone needs it

    near = get_close_matches(name, names, MAX_NAMED, 0.0)
    hint = f"name one of {', '.join(near)}, or all" if near else "run `lessons journal import`"
    raise VaultError(f"no project {name!r:.60} in the journal", hint)


def name_for(journal: Journal, folder: str) -> str:
    """Return the name that a folder's project has, or would have as the first of its name."""
    return find_project(journal.home, folder) or _free_name(_top_of(folder), {EVERYWHERE})


def recorded(journal: Journal, folder: str) -> bool:
    """Whether the sessions of a folder are recorded, itself or one above or its main work tree.

    Raises UnreadableError.
    """
    with _readable(journal):
        return spool.is_recorded(str(journal.folder), folder)


def recorded_folders(journal: Journal) -> list[str]:
    """Return the folders whose sessions are recorded: `*` for all, `!folder` excludes one.

    Raises UnreadableError.
    """
    with _readable(journal):
        return spool.recorded_folders(str(journal.folder))


@contextmanager
def _readable(journal: Journal) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise unreadable(journal.folder / RECORDED, error, "make it a file of yours") from None


def record(journal: Journal, folder: str) -> bool:
    """Record the sessions of a folder, or of `*`, from now on; False if they are. Raises WriteError."""
    top = ALL if folder == ALL else _top_of(folder)
    with held(journal.folder):
        before = recorded_folders(journal)
        lines = [line for line in before if line not in (top, _NOT + top)] + [top]
        _write_recorded(journal, lines)
    return top not in before


def stop_recording(journal: Journal, folder: str, but: Iterable[str] = ()) -> bool:
    """Record no more sessions of a folder, or for `*` of any but some; False if none were.

    Raises WriteError.
    """
    top = ALL if folder == ALL else _top_of(folder)
    if not recorded_folders(journal):
        return False
    with held(journal.folder):
        lines = recorded_folders(journal)
        others = [line for line in lines if line in but] if top == ALL else lines
        before = others != lines if top == ALL else recorded(journal, top)
        lines = [line for line in others if line != top]
        _write_recorded(journal, lines)
        if top != ALL and recorded(journal, top):  # through `*` or a folder above
            _write_recorded(journal, [*lines, _NOT + top])
    return before


def _write_recorded(journal: Journal, lines: Iterable[str]) -> None:
    text = ""
    for line in lines:
        refuse_breaks(Path(line))  # a folder `x\n*` would have all sessions recorded
        text += f"{line}\n"
    files.replace_file(journal.folder / RECORDED, text.encode("utf-8", "surrogateescape"))


def _joined(db: sqlite3.Connection, folder: str) -> str:
    """Return the project of a folder, with the folder noted in it.

    Raises GitError for a folder that is not known yet, and of whose repository git says nothing.
    """
    existing = _projects(db)
    project = _seen_at(existing, folder) or _moved_to(existing, folder, _root(folder))
    if project is None:
        names = {each.name.casefold() for each in existing}
        project = Project(_free_name(folder, names | {EVERYWHERE}), root=_root(folder))
    is_new = not project.folders or (folder not in project.folders and os.path.isdir(folder))  # noqa: PTH112  # Path's raises for odd names
    root = project.root or _root_if_read(folder)
    if is_new or root != project.root:
        folders = json.dumps([*dict.fromkeys([*project.folders, folder])])
        values = [project.name, root, folders]
        db.execute("INSERT OR REPLACE INTO project (name, root, folders) VALUES (?, ?, ?)", values)
    return project.name


def _seen_at(existing: Sequence[Project], folder: str) -> Project | None:
    """Return the project that was seen in a folder or above it."""
    by_folder = {each: project for project in existing for each in project.folders}
    is_there = os.path.isdir(folder)  # noqa: PTH112  # Path's raises for odd names
    for each in (folder,) if is_there else (folder, *map(str, Path(folder).parents)):
        if each in by_folder:
            return by_folder[each]
    return None


def _moved_to(existing: Sequence[Project], folder: str, root: str) -> Project | None:
    """Return the project whose repository, which begins with the commit `root`, came to a folder."""
    for project in existing:
        if root and project.root == root and all(_is_same(old, folder) for old in project.folders):
            return project
    return None


def _is_same(old: str, new: str) -> bool:
    """Whether a repository of the same beginnings left the old folder, or has the same address."""
    if not (Path(old) / ".git").exists():
        return True
    address = ""
    with suppress(GitError):  # of another clone, which may be broken
        address = git.setting(Path(old), git.ORIGIN)
    return address != "" and address == git.setting(Path(new), git.ORIGIN)


def _top_of(folder: str) -> str:
    """Return the folder that names the project around one, even if that is gone: the main work tree."""
    if not folder.startswith("/"):  # a path of another system
        return folder
    cleaned = os.path.realpath(folder)
    nearest = Path(cleaned)
    while not nearest.is_dir() and nearest != nearest.parent:
        nearest = nearest.parent
    top = git.top_of(nearest) if nearest != nearest.parent else None
    if top is None:
        return _repository_in(cleaned)
    common = git.common_folder(top)
    if common is None:
        return str(top)
    return str(common.parent if common.name == ".git" else common)


def _repository_in(path: str) -> str:
    """Return the repository that the path of a work tree names which is gone; else the path itself."""
    match = _WORK_TREE.match(path)
    return match[1] or match[2] if match else path


@functools.lru_cache(maxsize=256)
def _root(folder: str) -> str:
    """Return the first commit of the repository whose main work tree is a folder; "" without one."""
    has_git = folder.startswith("/") and (Path(folder) / ".git").exists()
    return git.root_commit(Path(folder)) if has_git else ""


def _root_if_read(folder: str) -> str:
    """Return the same as `_root`, "" also where git does not answer: it may do so later."""
    with suppress(GitError):
        return _root(folder)
    return ""


def _free_name(folder: str, names: Iterable[str]) -> str:
    last = PureWindowsPath(folder).name if "\\" in folder else Path(folder).name
    name = UNSAFE.sub("-", last.removesuffix(".git")).strip("-.")[:_MAX_NAME] or "project"
    free, number = name, 1
    while free.casefold() in names:
        number += 1
        free = f"{name}-{number}"
    return free
