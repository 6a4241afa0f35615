"""Reading and writing files so that nobody sees half of one, and every failure names its place."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vault_index.errors import VaultError, WriteError


def read_file(file: Path) -> bytes:
    """Read a file of the vault. Raises VaultError, which names it, if that cannot be done."""
    try:
        return file.read_bytes()
    except OSError as error:
        raise VaultError(f"{file} cannot be read: {error.strerror}") from None


def refuse_links(folder: Path, top: Path) -> None:
    """Raise WriteError if a folder, or one between it and `top`, is a link: it may lead elsewhere."""
    while folder != top and folder.is_relative_to(top):
        if folder.is_symlink():
            raise WriteError(f"{folder} is a link", "links are not followed: use another category")
        folder = folder.parent


def replace_file(path: Path, data: bytes, *, keep_mode: bool = False) -> None:
    """Write a file beside its place and rename it there: readers see the old or the new, whole.

    It is the user's alone, or as open as the one it replaces.
    """
    import tempfile  # 10 ms that a reader need not spend

    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            if keep_mode:
                os.fchmod(file.fileno(), path.stat().st_mode & 0o777 if path.exists() else 0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def remove_empty(folder: Path, top: Path) -> None:
    """Remove a folder and those above it, below `top`, as far as there is nothing in them."""
    while folder != top and folder.is_relative_to(top):
        try:
            folder.rmdir()
        except OSError:
            return
        folder = folder.parent


@contextmanager
def writing(place: Path) -> Iterator[None]:
    """Turn what a disk says - full, read-only, not ours - into a WriteError that names the place."""
    try:
        yield
    except OSError as error:
        raise WriteError(
            f"cannot write {place}: {error.strerror or error}",
            "free some space or make the folder writable",
        ) from None


def add_line(file: Path, line: str) -> bool:
    """Add a line to a text file, such as .gitignore, unless it is there. Raises WriteError.

    What is there stays byte for byte: git reads such files in any encoding, with any line ends.
    """
    with writing(file.parent):
        data = file.read_bytes() if file.exists() else b""
        if line.encode() in (known.strip() for known in data.splitlines()):
            return False
        newline = b"\r\n" if 2 * data.count(b"\r\n") > data.count(b"\n") else b"\n"
        gap = b"" if not data or data.endswith(b"\n") else newline
        replace_file(file, data + gap + line.encode() + newline, keep_mode=True)
    return True
