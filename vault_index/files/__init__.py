"""Read and write files so that nobody sees half of one, and every failure names its place.

`replace_file` is for files that only this program writes. `change_file`, `create_file`, `move_file` and
`remove_file` are for files that somebody may be saving: they follow no link below `within`, overwrite
only what the caller has read, and otherwise raise ChangedError.

A change writes a hidden file beside the old one, compares the old one with what was read, and renames
the new one into its place. The hidden name says which process writes it, so the next one removes what
a kill left. The mode stays; a hard link is broken, as git and most editors do.
"""

from __future__ import annotations

import _thread  # `threading` takes milliseconds to load
import binascii
import fcntl
import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from vault_index.errors import (
    ChangedError,
    LinkError,
    UnreadableError,
    VaultError,
    WriteError,
    hint_for,
    unreadable,
)
from vault_index.hotpath import index_files
from vault_index.text.blocks import composed

RACY_NS = 2_000_000_000  # the coarsest tick of a file system's times (FAT)

# Size, mtime, ctime and inode. Size and mtime alone can be kept through a change: `touch -r`,
# `cp -p`, a swap of two files by rename. Nobody can set a ctime.
MAX_BYTES = 64 * 1024 * 1024  # of a file that is read whole
Stamp = tuple[int, int, int, int]
DEVICES = Path("/dev")
TEMPORARY = ".lessons-tmp"  # the end of the name of each file that is written beside its place
IGNORED = f".*{TEMPORARY}"
# by a process of another machine or container, which nobody can ask for here
_LEFT_SECONDS = 86_400
_OWNER = re.compile(rf"\..+\.([0-9a-f]{{8}})-([0-9]{{1,9}})-\w+{re.escape(TEMPORARY)}")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NONBLOCK | os.O_CLOEXEC
_UMASK = _thread.allocate_lock()  # or the second of two threads reads what the first one set


def expanded(name: str) -> Path:
    """Return the path of a name that may begin with `~`; the home of no user stays as it was."""
    try:
        return Path(name).expanduser()
    except RuntimeError:
        return Path(name)


def stamp_of(stat: os.stat_result) -> Stamp:
    """Return a stamp that differs after any change of a file, of its name or of its permissions."""
    return stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino


def stamp(file: Path | str) -> Stamp | tuple[()]:
    """Return the stamp of a file, or of what a link to one leads to; () without it."""
    try:
        return stamp_of(os.stat(file))  # noqa: PTH116  # a Path takes twice as long to make
    except OSError:
        return ()


def is_racy(stamp: Stamp) -> bool:
    """Whether a file is so young that a change within the same tick would leave its stamp."""
    _, mtime, ctime, _ = stamp
    now = time.time_ns()
    return abs(now - ctime) < RACY_NS or 0 <= now - mtime < RACY_NS


def read_file(file: Path, limit: int = MAX_BYTES, *, follow: bool = False) -> bytes:
    """Read an ordinary file that others may have put there, such as a lesson or an agent's settings.

    With `follow` it may be a link to one, as people keep their settings. Raises UnreadableError, which
    names it, also if it has more bytes than the limit.
    """
    try:
        data = index_files.read(file, limit + 1, follow=follow)
    except OSError as error:
        raise unreadable(file, error) from None
    return _refuse_large(file, data, limit)


def is_missing(file: Path) -> bool:
    """Whether there is no file, and no other reason not to see one."""
    try:
        file.stat()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False


def read_named(file: Path, limit: int = MAX_BYTES) -> bytes:
    """Read a file that a person named: a file, a link, or a pipe in `/dev`, as the shell's `<(ls)`.

    Raises UnreadableError.
    """
    if not file.absolute().is_relative_to(DEVICES):
        return read_file(file, limit, follow=True)
    try:
        with file.open("rb") as opened:
            return _refuse_large(file, opened.read(limit + 1), limit)
    except OSError as error:
        raise unreadable(file, error, "name a file that is there") from None


def _refuse_large(file: Path, data: bytes, limit: int) -> bytes:
    if len(data) > limit:
        size = f"{limit >> 20} MB" if limit >> 20 else f"{limit >> 10} KB"
        raise UnreadableError(f"{file} is larger than {size}", "shorten it, or split it")
    return data


def read_if_any(file: Path, limit: int | None = None) -> bytes | None:
    """Return a file that is not the vault's, such as .gitignore; None without one.

    With a `limit` only so many bytes of its beginning. Raises WriteError for a link, which would bring in
    text from elsewhere, and for a device or pipe; UnreadableError for a file that is too large.
    """
    try:
        data = index_files.read(file, MAX_BYTES + 1 if limit is None else limit)
        return data if limit is not None else _refuse_large(file, data, MAX_BYTES)
    except OSError as error:
        if index_files.is_missing(error) and not os.path.lexists(file):
            return None
        if file.is_symlink():
            raise WriteError(f"{file} is a link", "put an ordinary file in its place") from None
        why = f"{file} is not a file that can be read: {error.strerror}"
        raise WriteError(why, hint_for(error, "put an ordinary file in its place")) from None


def read_json(file: Path) -> dict[str, Any]:
    """Return the JSON object in a file of this program; {} without one, and for a damaged one.

    Raises WriteError as `read_if_any` does.
    """
    import json  # a hook need not load it

    data = read_if_any(file)
    with suppress(ValueError, RecursionError):
        values = json.loads(data or b"{}")
        return values if isinstance(values, dict) else {}
    return {}


def names_in(folder: Path) -> list[str]:
    """Return the names in a folder of this program, none without it. Raises UnreadableError."""
    try:
        return os.listdir(folder)  # noqa: PTH208  # no path for each
    except FileNotFoundError:
        return []
    except OSError as error:
        raise unreadable(folder, error) from None


def refuse_links(folder: Path, top: Path) -> None:
    """Raise LinkError if a folder, or one between it and `top`, is a link: it may lead elsewhere."""
    for each in _between(folder, top):
        if each.is_symlink():
            raise LinkError(f"{each} is a link", "use a folder that is not a link")


def _between(folder: Path, top: Path) -> Iterator[Path]:
    while folder != top and folder.is_relative_to(top):
        yield folder
        folder = folder.parent


def refuse_other_repository(folder: Path, top: Path) -> None:
    """Raise VaultError if a folder below `top`, or one above it, is a git repository of its own.

    A submodule is one, too. Its lessons are read like the others, but what is added to it, or
    taken out, is for a commit in that repository, which nothing here makes.
    """
    for each in _between(folder, top):
        if os.path.lexists(each / ".git"):
            path = each.relative_to(top.parent)
            raise VaultError(
                f"{path} is a git repository of its own, which is left alone",
                "change it there, with git",
            )


@contextmanager
def _holding(file: Path, within: Path, *, make: bool = False) -> Iterator[int]:
    """Hold the folder of a file open, and return its descriptor: nobody can put another in its place.

    It is reached from `within` over no link. With `make` folders that are missing are made. Raises
    LinkError, ChangedError if the folder is gone, and OSError.
    """
    folder = file.parent
    below = folder.relative_to(within).parts if folder.is_relative_to(within) else ()
    reached = within if folder.is_relative_to(within) else folder
    if make:
        reached.mkdir(parents=True, exist_ok=True)
    try:
        descriptor = os.open(reached, _FOLDER)
    except FileNotFoundError:
        raise _changed(file) from None
    try:
        for name in below:
            reached /= name
            if make:
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=descriptor)
            above, descriptor = descriptor, _open_below(name, descriptor, reached, file)
            os.close(above)
        yield descriptor
    finally:
        os.close(descriptor)


def _open_below(name: str, above: int, path: Path, file: Path) -> int:
    try:
        return os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=above)
    except FileNotFoundError:
        raise _changed(file) from None
    except OSError:
        if stat.S_ISLNK(os.stat(name, dir_fd=above, follow_symlinks=False).st_mode):
            raise LinkError(f"{path} is a link", "use a folder that is not a link") from None
        raise


def replace_file(path: Path, data: bytes) -> None:
    """Write a file beside its place and rename it there: readers see the old or the new, whole.

    For files of this program alone: it overwrites whatever is there, and only the user can read it.
    Raises WriteError.
    """
    with (
        writing(path),
        _holding(path, path.parent) as folder,
        _beside(path, data, 0o600, folder) as new,
    ):
        os.replace(new, path.name, src_dir_fd=folder, dst_dir_fd=folder)


def refuse_changed(file: Path, expected: bytes) -> None:
    """Raise ChangedError unless a file is an ordinary one with the expected content."""
    with _holding(file, file.parent) as folder:
        _mode_of_unchanged(file, expected, folder)


def _mode_of_unchanged(file: Path, expected: bytes, folder: int) -> int:
    """Return the mode of a file. Raises ChangedError unless it is an ordinary file as expected."""
    try:
        before = os.stat(file.name, dir_fd=folder, follow_symlinks=False)
        same = _content(file, folder) == expected
        after = os.stat(file.name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        raise _changed(file) from None
    if not same or (before.st_ino, before.st_ctime_ns) != (after.st_ino, after.st_ctime_ns):
        raise _changed(file)
    return stat.S_IMODE(after.st_mode) & 0o777


def change_file(file: Path, data: bytes, *, expected: bytes, within: Path) -> None:
    """Replace the content of a file if it still is what was read.

    Raises ChangedError, with the file as somebody saved it, if it is not, and WriteError.
    """
    with writing(file), _holding(file, within) as folder:
        mode = _mode_of_unchanged(file, expected, folder)
        if data == expected:
            return
        with _beside(file, data, mode, folder) as new:
            _mode_of_unchanged(file, expected, folder)
            os.replace(new, file.name, src_dir_fd=folder, dst_dir_fd=folder)


def create_file(file: Path, data: bytes, *, within: Path, mode: int = 0o644) -> bool:
    """Write a new file, with the folders above it; False if there is one. Raises WriteError."""
    with writing(file), _holding(file, within, make=True) as folder:
        with _UMASK:  # the system shows the bits that new files go without only by a change
            mask = os.umask(0o077)
            os.umask(mask)
        with _beside(file, data, mode & ~mask, folder) as new:
            return _rename(new, folder, file.name, folder)


def move_file(old: Path, new: Path, *, within: Path) -> bool:
    """Rename a file, with the folders above its new name; False if that name is taken.

    Raises WriteError.
    """
    with (
        writing(new),
        _holding(old, within) as source,
        _holding(new, within, make=True) as target,
    ):
        if not _is_there(old.name, source):
            raise _changed(old)
        return _rename(old.name, source, new.name, target)


def _rename(old: str, source: int, new: str, target: int) -> bool:
    if _is_there(new, target):
        return False
    os.rename(old, new, src_dir_fd=source, dst_dir_fd=target)
    return True


def _is_there(name: str, folder: int) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def remove_file(file: Path, *, expected: bytes, within: Path) -> None:
    """Delete a file if it still is what was read. Raises ChangedError if it is not, and WriteError."""
    with writing(file), _holding(file, within) as folder:
        _mode_of_unchanged(file, expected, folder)
        os.unlink(file.name, dir_fd=folder)


def remove_empty(folder: Path, top: Path) -> None:
    """Remove a folder and its empty parents below `top`."""
    try:
        for each in _between(folder, top):
            each.rmdir()
    except OSError:
        return


def make_durable(file: Path, *, within: Path) -> None:
    """Wait until the disk has a file, or that it is gone, and its folders. Raises WriteError."""
    with writing(file):
        for path in (file, *file.parents):
            try:
                handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            except FileNotFoundError:
                continue
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
            if path == within:
                return


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an error of the disk (full, read-only, not ours) into a WriteError that names the path."""
    try:
        yield
    except OSError as error:
        raise WriteError(
            f"cannot write {path}: {error.strerror or error}",
            hint_for(error, "make the folder writable"),
        ) from None


def add_line(file: Path, line: str) -> bool:
    """Add a line to a text file, such as .gitignore, unless it is there. Raises WriteError.

    The text before it stays byte for byte: git reads such files in any encoding, with any line ends.
    """
    before = read_if_any(file)
    data = before or b""
    if line.encode() in (existing.strip() for existing in data.splitlines()):
        return False
    newline = b"\r\n" if 2 * data.count(b"\r\n") > data.count(b"\n") else b"\n"
    gap = b"" if not data or data.endswith(b"\n") else newline
    put_file(file, data + gap + line.encode() + newline, expected=before, within=file.parent)
    return True


def as_on_disk(path: str, same: Callable[[str], str] = composed) -> str:
    """Return a path with its names as the disk spells them, in whatever form of Unicode.

    Names are alike if they are the `same`.
    """
    if (path.isascii() and same is composed) or os.path.lexists(path):
        return path
    above, name = os.path.split(path)
    folder = Path(as_on_disk(above, same) if above not in ("", path) else above)
    with suppress(OSError):
        alike = (one.name for one in folder.iterdir() if same(one.name) == same(name))
        name = next(alike, name)
    return str(folder / name)


def put_file(
    file: Path, data: bytes, *, expected: bytes | None, within: Path, mode: int = 0o644
) -> None:
    """Change a file, or create it where None is expected. Raises ChangedError, WriteError."""
    if expected is not None:
        change_file(file, data, expected=expected, within=within)
    elif not create_file(file, data, within=within, mode=mode):
        raise _changed(file)


@contextmanager
def _beside(file: Path, data: bytes, mode: int, folder: int) -> Iterator[str]:
    """Write a hidden file beside another, return its name, and remove it unless it was renamed."""
    remove_left_overs(file.parent)
    # a name may have 255 bytes, of which a character takes up to four
    random = os.urandom(4).hex()
    name = f".{file.name[:40]}.{_machine()}-{os.getpid()}-{random}{TEMPORARY}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(name, flags, 0o600, dir_fd=folder)
    try:
        with os.fdopen(handle, "wb") as new:
            new.write(data)
            os.fchmod(new.fileno(), mode)
        yield name
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder)


def remove_left_overs(folder: Path) -> None:
    """Remove from a folder what writers that were killed left beside the places of their files."""
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if entry.name.endswith(TEMPORARY)]
    except OSError:
        return
    for name in names:
        remove_left_over(folder / name)


def remove_left_over(file: Path) -> None:
    """Remove a file if a writer that was killed left it beside the place of its file."""
    owner = _OWNER.fullmatch(file.name)
    if owner is None:
        return
    from vault_index.hotpath import clock  # few commands find one

    try:
        found = file.lstat()
        if owner[1] == _machine():
            is_left = not index_files.is_alive(int(owner[2]))
        else:
            is_left = not clock.is_near(found.st_mtime, _LEFT_SECONDS)
        if is_left and stat.S_ISREG(found.st_mode):
            file.unlink()
    except OSError:  # gone, or not ours
        return


@lru_cache(maxsize=1)
def _machine() -> str:
    """Return an id of this namespace of process ids: a machine, or a container."""
    try:
        space = os.readlink("/proc/self/ns/pid")  # noqa: PTH115  # not a file's name
    except OSError:
        space = ""
    return f"{binascii.crc32(f'{os.uname().nodename} {space}'.encode()):08x}"


def _content(file: Path, folder: int) -> bytes | None:
    try:
        return index_files.read(file.name, folder=folder)
    except OSError:
        return None


def _changed(file: Path) -> ChangedError:
    change = "has changed meanwhile" if os.path.lexists(file) else "is gone meanwhile"
    if file.is_symlink():
        change = "is a link, and links are not followed"
    return ChangedError(f"{file} {change}; nothing was done to it", "run the command again")


def make_folder(folder: Path) -> None:
    """Make a folder, with those above it, for its user alone.

    Raises WriteError, also for a link in its place.
    """
    with writing(folder):
        if not folder.parent.is_dir():
            make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
        now = folder.lstat()
        if stat.S_ISLNK(now.st_mode) or now.st_uid != os.geteuid():
            kind = "a link" if stat.S_ISLNK(now.st_mode) else "somebody else's"
            raise WriteError(f"{folder} is {kind}", "remove it, or put a folder in its place")
        if stat.S_IMODE(now.st_mode) & 0o077:
            folder.chmod(0o700)


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Hold the lock that a file is, made if it is missing: one thread of all processes at a time.

    The system takes it from a process that dies. Raises WriteError.
    """
    with hold(_open_lock(file)):
        yield


@contextmanager
def try_lock(file: Path) -> Iterator[bool]:
    """Hold the same lock without waiting for it; False while another has it. Raises WriteError."""
    with hold(_open_lock(file), wait=False) as is_alone:
        yield is_alone


@contextmanager
def hold(descriptor: int, *, wait: bool = True) -> Iterator[bool]:
    """Hold the lock of an open file, and close the file. Without `wait`: False while another has it."""
    try:
        if wait:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield wait or index_files.try_lock(descriptor)
    finally:
        os.close(descriptor)


def _open_lock(file: Path) -> int:
    with writing(file):
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        return os.open(file, flags, 0o600)
