"""Two ways to rename that Python's `os` lacks: exchange two names, and never overwrite.

Linux (`renameat2`) and macOS (`renamex_np`) do both in one step on their usual file systems. If the
system or the file system cannot (NFS, FAT), callers compare just before they rename.
"""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

EXCHANGE, KEEP = "exchange", "keep"
_FLAGS = {"linux": {EXCHANGE: 2, KEEP: 1}, "darwin": {EXCHANGE: 2, KEEP: 4}}
_HERE = -100  # AT_FDCWD: paths are not relative to an open folder
_CANNOT = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP)


def exchange(first: Path, second: Path) -> bool:
    """Exchange two names in one step; False, with nothing done, where that cannot be done.

    Raises OSError, FileNotFoundError if one of them does not exist.
    """
    return ask_system(first, second, EXCHANGE)


def move(old: Path, new: Path) -> None:
    """Rename a file unless the new name exists. Raises OSError, FileExistsError if it does."""
    if ask_system(old, new, KEEP):
        return
    before = old.lstat()
    try:
        os.link(old, new, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if os.path.lexists(new):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(new)) from None
        os.rename(old, new)  # noqa: PTH104  # Path.rename() is the same
        return
    now = old.lstat()
    if (now.st_dev, now.st_ino) == (before.st_dev, before.st_ino):
        old.unlink()  # else a save put another file there: both stay


def ask_system(old: Path, new: Path, flag: str) -> bool:
    """Call the system's own rename with a flag; False on a system without one. Raises OSError."""
    import ctypes  # 10 ms: only what changes files needs it

    flags = _FLAGS.get(sys.platform)
    if flags is None:
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    source, target = os.fsencode(old), os.fsencode(new)
    try:
        if sys.platform == "darwin":
            failed = libc.renamex_np(source, target, ctypes.c_uint(flags[flag]))
        else:
            failed = libc.renameat2(_HERE, source, _HERE, target, ctypes.c_uint(flags[flag]))
    except AttributeError:  # an old C library
        return False
    if not failed:
        return True
    number = ctypes.get_errno()
    if number in _CANNOT:
        return False
    raise OSError(number, os.strerror(number), str(old), None, str(new))
