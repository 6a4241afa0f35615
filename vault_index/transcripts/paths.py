"""Paths as a transcript has them, of any system, shown relative to the folder of their project."""

from __future__ import annotations

import posixpath
import re

_DRIVE = re.compile(r"^[A-Za-z]:[\\/]|^\\\\")


def shown(path: str, folder: str, current: str = "") -> str:
    """Return a path relative to `folder`, absolute outside of it. `current`: where it was named."""
    windows = bool(_DRIVE.match(path) or _DRIVE.match(folder) or _DRIVE.match(current))
    path, folder, current = (_plain(text, windows) for text in (path, folder, current))
    if not _is_absolute(path):
        if not current or not _is_absolute(current):
            return posixpath.normpath(path)
        path = posixpath.join(current, path)
    path = posixpath.normpath(path)
    prefix = f"{folder.rstrip('/')}/"
    return path.removeprefix(prefix) if len(prefix) > 1 else path


def _plain(path: str, windows: bool) -> str:
    return path.replace("\\", "/") if windows else path


def _is_absolute(path: str) -> bool:
    return path.startswith("/") or bool(_DRIVE.match(path))
