"""Read git's plain files, without starting it, where the answer is certain.

A process of git, and the package that starts it, take longer than to open an index.
Whatever is unusual - a repository of somebody else, another format, a variable that names another
index - is left to git.
"""

from __future__ import annotations

import os
from pathlib import Path

from vault_index.hotpath import index_files

MAX_BYTES = 64 * 1024 * 1024  # of an index that is read whole

MAX_SETTINGS = 1024 * 1024

_BRANCH = "ref: refs/heads/"


def top_of(folder: Path) -> Path | None:
    """Return the folder with `.git` that a folder is in; None without one, or in a bare repository.

    Also where this user may not look into `.git`: that is for git to say.
    """
    start = Path(os.path.realpath(folder))
    for here in (start, *start.parents):
        dot = here / ".git"
        if os.path.isfile(dot) or _is_git_folder(dot) or _is_closed(dot):  # noqa: PTH113  # Path's raises where it may not look
            return here
        if _is_git_folder(here):
            return None
    return None


def is_bare(folder: Path) -> bool:
    """Whether git would take a folder for one in a repository without a work tree."""
    start = Path(os.path.realpath(folder))
    return top_of(start) is None and any(map(_is_git_folder, (start, *start.parents)))


def _is_git_folder(folder: Path) -> bool:
    return os.path.lexists(folder / "HEAD") and all(
        os.path.isdir(folder / name)  # noqa: PTH112  # as in `top_of`
        for name in ("objects", "refs")
    )


def _is_closed(folder: Path) -> bool:
    """Whether there is a folder that this user may not enter."""
    return os.path.isdir(folder) and not os.access(folder, os.X_OK)  # noqa: PTH112  # as in `top_of`


def index_file(folder: Path) -> Path | None:
    """Return the file in which git notes what it tracks; None without a repository."""
    top = top_of(folder)
    return git_folder(top) / "index" if top else None


def git_folder(top: Path) -> Path:
    """Return the folder that `.git` is, or names: of a linked work tree, a submodule."""
    dot = top / ".git"
    try:
        content = os.fsdecode(index_files.read(dot, 4096))
    except OSError:
        return dot
    return top / content.removeprefix("gitdir:").strip()


def common_folder(top: Path) -> Path | None:
    """Return git's folder of the main work tree, if `top` is a linked one; None if it is not."""
    folder = git_folder(top)
    named = _read(folder / "commondir")
    return Path(os.path.realpath(folder / named)) if named else None


def cut_of(top: Path) -> frozenset[str]:
    """Return the oldest commits of a shallow clone, which seem to have written every file."""
    folder = common_folder(top) or git_folder(top)
    return frozenset(_read(folder / "shallow", MAX_SETTINGS).split())


def branch_of(folder: Path) -> str:
    """Return the branch that is checked out around a folder, by its files alone; "" where none is."""
    top = top_of(folder)
    head = _read(git_folder(top) / "HEAD") if top else ""
    return head.removeprefix(_BRANCH) if head.startswith(_BRANCH) else ""


def tracks_nothing_named(top: Path, name: str) -> bool:
    """Whether git's index surely has no path with this name in it, in any case of its letters."""
    folder = git_folder(top)
    if "GIT_INDEX_FILE" in os.environ or any(folder.glob("sharedindex.*")):
        return False
    try:
        data = index_files.read(folder / "index", MAX_BYTES + 1, follow=True)
    except OSError:
        return False
    # in version 4 a path is written without what it shares with the one before it
    is_plain = data[:4] == b"DIRC" and data[4:8] in (b"\0\0\0\2", b"\0\0\0\3")
    is_sparse = b"sdir" in data  # folders stand for what is in them
    whole = len(data) <= MAX_BYTES
    return whole and is_plain and not is_sparse and os.fsencode(name).lower() not in data.lower()


def _read(file: Path, limit: int = 4096) -> str:
    try:
        return os.fsdecode(index_files.read(file, limit)).strip()
    except OSError:
        return ""
