"""The owner of a `.vault_index`: ours only if this user made it, on this machine, for this checkout.

A clone may bring a folder of that name, with links in it or an index of other texts. So an index is
believed only if `.vault_index/owner` holds a mark made from a random key, `index.key` in the user's
folder, and the checkout's path. A link, a folder that git tracks and one of another user are left
alone. In this user's folder without the mark, copied or moved, our files are removed unread, and the
index is built again.

Files below it are opened through `open_file`: no link, no pipe, no second name of another file.
"""

from __future__ import annotations

import os
import re
import shlex
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path

from vault_index import files, git
from vault_index.errors import ForeignIndexError, GitError, UnreadableError, WriteError, unreadable
from vault_index.hotpath import index_files, spool
from vault_index.hotpath.index_files import KEY, OWNER

INDEX_NAME = re.compile(r"\d{8}-\d{6}-[0-9a-f]{4}")  # of the folder of an index: when it was built
ELSEWHERE = "indexes"  # in the user's folder, of vaults that can be read only
_KEY = re.compile(rb"[0-9a-f]{64}")
# every name that we make in `.vault_index`, with what a kill leaves of them
_NAMES = re.compile(
    INDEX_NAME.pattern + r"|owner|current|lock|building|at|background\.log(\.old)?|\.gitignore"
    r"|watch\.(lock|log|log\.old|sock)|\.(owner|current)\..{8}"
)


def check(folder: Path) -> None:
    """Raise ForeignIndexError if a `.vault_index` is not to be touched, whatever it holds."""
    git_index = git.index_file(folder.parent)
    stamp = files.stamp(git_index) if git_index else ()
    if stamp and _may_be_tracked(folder, stamp):  # without one nothing was ever added
        raise ForeignIndexError(
            f"{folder} is tracked by git, so it is not an index of this machine",
            f"git -C {shlex.quote(str(folder.parent))} rm -r -q -f {folder.name}, then commit that",
        )
    try:
        stat_now = folder.lstat()
    except OSError:
        return  # it does not exist yet, or whoever opens it will see why not
    if not stat.S_ISDIR(stat_now.st_mode):
        kind = "a link" if stat.S_ISLNK(stat_now.st_mode) else "no folder"
        remove = f"rm {shlex.quote(str(folder))}"
        raise ForeignIndexError(f"{folder} is {kind}, so it is not used", remove)
    if stat_now.st_uid != os.geteuid():
        raise ForeignIndexError(f"{folder} belongs to another user", _to_own(folder))


def is_anothers(path: Path) -> bool:
    """Whether something is there, and belongs to another user."""
    try:
        return path.lstat().st_uid != os.geteuid()
    except OSError:
        return False


def unreadable_index(path: Path, error: OSError) -> UnreadableError:
    """Return the error for a file of an index that the system does not let us read."""
    hint = "make it readable"
    if isinstance(error, PermissionError) and (folder := _with_anothers(path)):
        hint = _to_own(folder)
    return unreadable(path, error, hint)


def _with_anothers(file: Path) -> Path | None:
    """Return the `.vault_index` of a place if that, or what is between them, is another user's."""
    above = [file, *file.parents]
    top = next((path for path in above if path.name == spool.INDEX), None)
    between = above[: above.index(top) + 1] if top else []
    return top if any(map(is_anothers, between)) else None


def _to_own(folder: Path) -> str:
    """Return the command that gives a folder to this user."""
    import pwd

    user = str(os.geteuid())
    with suppress(KeyError):  # a container may know no name for it
        user = pwd.getpwuid(os.geteuid()).pw_name
    sudo = "sudo " if os.geteuid() else ""
    return f"{sudo}chown -R {user} {shlex.quote(str(folder))}"


def is_ours(folder: Path) -> bool:
    """Whether a `.vault_index` carries the mark of this user and this checkout.

    Raises UnreadableError where the disk does not say.
    """
    try:
        return index_files.is_ours(str(folder), index_files.home_folder(os.environ))
    except OSError as error:
        raise unreadable_index(Path(error.filename or folder), error) from None


def claim(folder: Path) -> None:
    """Make `.vault_index` ours: empty if it is new, or if it does not carry our mark.

    Raises ForeignIndexError, WriteError, OSError.
    """
    check(folder)
    if is_ours(folder):
        return
    with _key() as key:  # one of ten at once does it
        if is_ours(folder):
            return
        if folder.parent.parent == Path(index_files.home_folder(os.environ), ELSEWHERE):
            files.make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
        with opened(folder) as handle:
            os.fchmod(handle, 0o700)
            for name in os.listdir(handle):  # noqa: PTH208  # of the folder that is open, by no path
                if _NAMES.fullmatch(name):
                    _remove(handle, name)
            _make(handle, ".gitignore", b"*\n")
            _make(handle, OWNER, index_files.mark(str(folder), key))


def open_file(path: Path, flags: int = os.O_RDONLY) -> int:
    """Open a file below `.vault_index` and return its descriptor; with O_CREAT it is 0600.

    Raises OSError for a link, also one in place of its folder, for anything but a plain file, and for
    a file with a second name or another owner.
    """
    with opened(path.parent) as handle:
        return index_files.open_in(handle, path.name, flags)


def read_text(path: Path) -> str:
    """Read a text file below `.vault_index`. Raises OSError as `open_file` does, and ValueError."""
    with os.fdopen(open_file(path), encoding="utf-8") as file:
        return file.read()


def is_folder(path: Path) -> bool:
    """Whether there is a folder, and not a link to one."""
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except OSError:
        return False


def make_folder(path: Path) -> None:
    """Make a folder below `.vault_index` unless it is there. Raises OSError for a link to one."""
    path.mkdir(mode=0o700, exist_ok=True)
    with opened(path):
        return


def refuse_links(folder: Path) -> None:
    """Raise OSError if anything below a folder is neither file nor folder: LanceDB follows links."""
    pending = [folder]
    while pending:
        with os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(Path(entry.path))
                elif not entry.is_file(follow_symlinks=False):
                    raise index_files.refused(entry.path)


def remove_tree(folder: Path) -> None:
    """Remove a folder of ours, or a link in its place; what cannot be removed stays."""
    if is_folder(folder):
        import shutil

        shutil.rmtree(folder, ignore_errors=True)
    else:
        with suppress(OSError):
            folder.unlink()


def _may_be_tracked(folder: Path, stamp: files.Stamp) -> bool:
    """Whether git tracks a folder. Raises GitError where it does not say, of one without our mark."""
    try:
        return _is_tracked(folder, stamp)
    except GitError:
        if os.path.lexists(folder) and not is_ours(folder):
            raise
        return False  # nothing is there yet, or what we made


@lru_cache(maxsize=64)
def _is_tracked(folder: Path, _stamp: files.Stamp) -> bool:
    """Ask git, once for each state of its index file."""
    return git.is_tracked(folder.parent, folder.name)


@contextmanager
def _key() -> Iterator[bytes]:
    """Yield the user's key, made if missing, under a lock. Raises WriteError."""
    home = Path(index_files.home_folder(os.environ))
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(home / KEY, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise WriteError(
            f"cannot write {home / KEY}: {error.strerror}",
            f"make {home} writable: the key that marks indexes is kept in it",
        ) from None
    with files.hold(handle):
        key = os.pread(handle, 128, 0)
        if not _KEY.fullmatch(key):
            import secrets

            key = secrets.token_hex(32).encode()
            os.ftruncate(handle, 0)
            os.pwrite(handle, key, 0)
            os.fchmod(handle, 0o600)
        yield key


@contextmanager
def opened(folder: Path | str, *, make: bool = False) -> Iterator[int]:
    """Open a folder, and no link to one, for as long as its descriptor is used. Raises OSError."""
    open_it = index_files.open_or_make if make else index_files.open_folder
    handle = open_it(str(folder))
    try:
        yield handle
    finally:
        os.close(handle)


def _make(folder: int, name: str, data: bytes) -> None:
    handle = index_files.open_in(folder, name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    with os.fdopen(handle, "wb") as file:
        file.write(data)


def _remove(folder: int, name: str) -> None:
    mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    if stat.S_ISDIR(mode):
        import shutil

        shutil.rmtree(name, dir_fd=folder)
    else:
        os.unlink(name, dir_fd=folder)


# One writer at a time: the lock of a vault's index, which the system takes from a process that
# dies.
_FILE = "lock"


@contextmanager
def held(folder: Path, *, wait: bool, name: str = _FILE) -> Iterator[bool]:
    """Hold the lock of a `.vault_index`, which is made if it is missing, or another one by its `name`.

    Without `wait` it yields False if another process has it. Raises ForeignIndexError, WriteError.
    """
    with files.writing(folder):
        claim(folder)
        descriptor = open_file(folder / name, os.O_RDWR | os.O_CREAT)
    with files.hold(descriptor, wait=wait) as is_free:
        yield is_free
