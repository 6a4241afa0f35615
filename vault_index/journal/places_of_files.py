"""Paths as a transcript has them, of any system, shown relative to the folder of their project."""

from __future__ import annotations

import posixpath
import re

_DRIVE = re.compile(r"^[A-Za-z]:[\\/]|^\\\\")


def shown(path: str, folder: str, current: str = "") -> str:
    """Return a path relative to `folder`, else to the `current` one; absolute outside of both."""
    windows = bool(_DRIVE.match(path) or _DRIVE.match(folder) or _DRIVE.match(current))
    path, folder, current = (_plain(text, windows) for text in (path, folder, current))
    if not _is_absolute(path):
        if not current or not _is_absolute(current):
            return posixpath.normpath(path)
        path = posixpath.join(current, path)
    path = posixpath.normpath(path)
    for base in (folder, current):
        prefix = f"{base.rstrip('/')}/"
        if len(prefix) > 1 and path[: len(prefix)] == prefix:
            return path[len(prefix) :]
    return path


def _plain(path: str, windows: bool) -> str:
    return path.replace("\\", "/") if windows else path


def _is_absolute(path: str) -> bool:
    return path.startswith("/") or bool(_DRIVE.match(path))
