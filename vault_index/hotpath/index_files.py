"""Find the vault, and open files of a `.vault_index` that is ours: standard library only.

The hook loads this where no watcher listens, so it is as small as it can be; `store.ownership`
explains the mark.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # typing takes 3 ms to load
if TYPE_CHECKING:
    from collections.abc import Mapping

OWNER, KEY = "owner", "index.key"
POINTER = "current"  # names the index in force
# the module `stat` is one more to load
_TYPE, _PLAIN, _LINK = 0o170000, 0o100000, 0o120000
MAX_SETTINGS_BYTES = 1024 * 1024


def open_folder(folder: str) -> int:
    """Open a folder and return its descriptor. Raises OSError, for a link to a folder too."""
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def open_or_make(folder: str) -> int:
    """Do the same for a folder that is made if need be, for its user alone. Raises OSError."""
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        pass
    return open_folder(folder)


def try_lock(handle: int, *, shared: bool = False) -> bool:
    """Take the lock of an open file without waiting; False while another process has it.

    The system takes it from a process that dies.
    """
    import fcntl  # a warm hook takes none

    try:
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def open_in(folder: int, name: str, flags: int) -> int:
    """Open a file of a folder that is open and return its descriptor; with O_CREAT it is 0600.

    Raises OSError for a link, for anything but a plain file, and for a file that has a second name or
    belongs to another user.
    """
    import errno

    # O_NONBLOCK: opening a pipe would wait for its other end
    flags |= os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        handle = os.open(name, flags, 0o600, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise refused(name) from None
        raise
    opened = os.fstat(handle)
    is_plain = opened.st_mode & _TYPE == _PLAIN and opened.st_nlink <= 1
    if not is_plain or opened.st_uid != os.geteuid():
        os.close(handle)
        raise refused(name)
    return handle


def has_index(folder: int) -> bool:
    """Whether an open `.vault_index` has an index in force."""
    try:
        os.stat(POINTER, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return True


def refused(name: str) -> OSError:
    """Return the error for a name that is not opened."""
    import errno

    return OSError(errno.ELOOP, f"{name} is a link, or no file of this user alone: remove it", name)


def is_ours(folder: str, home: str) -> bool:
    """Whether a `.vault_index` carries the mark of this user and this checkout.

    Raises OSError where the disk does not say.
    """
    try:
        key = read(f"{home}/{KEY}", 128)
        written = read(f"{folder}/{OWNER}", 128)
    except OSError as error:
        if is_missing(error):
            return False
        raise
    import hmac

    return hmac.compare_digest(written, mark(folder, key))


def mark(folder: str, key: bytes) -> bytes:
    """Return the content of the file `owner` in a `.vault_index` that was marked with this key."""
    import hashlib

    checkout = os.fsencode(os.path.realpath(os.path.dirname(folder)))
    return hashlib.blake2b(checkout, key=key.strip(), digest_size=32).hexdigest().encode()


def read(
    path: str | os.PathLike[str],
    limit: int = -1,
    *,
    follow: bool = False,
    folder: int | None = None,
) -> bytes:
    """Return the beginning of an ordinary file; with `follow` also of the one that a link leads to.

    `folder` is the descriptor of the folder in which a name is looked up. Raises OSError: for anything
    else it is no ordinary file, and is not waited for.
    """
    handle = open_plain(path, follow=follow, folder=folder)
    try:
        with open(handle, "rb", closefd=False) as opened:
            return opened.read(limit)
    finally:
        os.close(handle)


def open_plain(
    path: str | os.PathLike[str], *, follow: bool = False, folder: int | None = None
) -> int:
    """Open an ordinary file for reading, as `read` does, and return its descriptor. Raises OSError."""
    # before it is opened: that alone can rewind a tape; a pipe without O_NONBLOCK waits for a writer
    _refuse_special(path, os.stat(path, dir_fd=folder, follow_symlinks=follow))
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    handle = os.open(path, flags, dir_fd=folder)
    try:
        _refuse_special(path, os.fstat(handle))
    except OSError:
        os.close(handle)
        raise
    return handle


def _refuse_special(path: str | os.PathLike[str], found: os.stat_result) -> None:
    if found.st_mode & _TYPE != _PLAIN:
        import errno

        kind = "a link" if found.st_mode & _TYPE == _LINK else "no ordinary file"
        raise OSError(errno.ELOOP, f"it is {kind}", os.fspath(path))


def is_missing(error: OSError) -> bool:
    """Whether an error says that nothing of ours is there, and not that the disk cannot say it."""
    import errno

    return error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG)


def is_alive(pid: int) -> bool:
    """Whether a process is there, of any user."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True


# Where the vault is: named, around a folder, or the user's default. Nothing else looks for one.
#
# On the path of every prompt, so it works on strings: pathlib takes as long to load as all the rest.
FOLDER = "lessons"
SETTINGS = "vault.toml"


def find(named: str | None, folder: str, environ: Mapping[str, str]) -> str | None:
    """Return the root of a vault, the folder that holds `lessons/`; None without one.

    `named`, else `$LESSONS_VAULT`, is a path in or below it. Without either it is the nearest vault from
    `folder` upwards, else the `vault` of the user's settings. Raises ValueError if those are not TOML,
    OSError if they cannot be read, or if a disk does not answer.
    """
    named = named or environ.get("LESSONS_VAULT")
    if named:
        path = os.path.expanduser(named)
        return around(path) if _found(path) else None
    if nearest := around(folder):
        return nearest
    try:
        data = read(f"{home_folder(environ)}/config.toml", MAX_SETTINGS_BYTES + 1, follow=True)
    except (FileNotFoundError, NotADirectoryError):
        return None
    import tomllib

    chosen = tomllib.loads(data.decode("utf-8-sig")).get("vault")
    return around(os.path.expanduser(chosen)) if isinstance(chosen, str) else None


def around(folder: str) -> str | None:
    """Return the root of the nearest vault, from a folder upwards; None without one.

    A `lessons` that is a link is no vault: it may lead to anything of the user's. Raises OSError if a
    disk does not answer.
    """
    here = os.path.abspath(folder)
    while True:
        if is_vault(f"{here}/{FOLDER}"):
            return here
        above, name = os.path.split(here)
        if name == FOLDER and is_vault(here):
            return above
        if above == here:
            return None
        here = above


def home_folder(environ: Mapping[str, str]) -> str:
    """Return the user's folder: `$LESSONS_HOME`, else `~/.lessons`."""
    return os.path.expanduser(environ.get("LESSONS_HOME") or "~/.lessons")


def is_vault(folder: str) -> bool:
    """Whether a folder `lessons` is that of a vault. Raises OSError if a disk does not answer."""
    found = _found(f"{folder}/{SETTINGS}")
    return found is not None and found.st_mode & _TYPE == _PLAIN and not os.path.islink(folder)


def _found(path: str) -> os.stat_result | None:
    """Return the status of a path; None without it. Raises OSError if a disk does not answer."""
    try:
        return os.stat(path)
    except OSError as error:
        if is_missing(error) or isinstance(error, PermissionError):
            return None
        raise
    except ValueError:  # a zero in the name
        return None
