"""The token that HTTP clients send: a file of the user's folder that only its user reads."""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path

from vault_index import files
from vault_index.errors import VaultError, WriteError
from vault_index.hotpath import index_files

FILE = "token"
MAX_BYTES = 1024
_TOKEN = re.compile(rb"[!-~]{16,256}")  # what a header can hold, and nobody guesses


def load_token(home: Path) -> str:
    """Return the token in a user's folder, made if it is missing. Raises VaultError, WriteError."""
    file = home / FILE
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = os.open(home, os.O_RDONLY | os.O_DIRECTORY)  # the user's may be a link
        try:
            handle = index_files.open_in(folder, FILE, os.O_RDWR | os.O_CREAT)
        finally:
            os.close(folder)
    except OSError as error:
        hint = "make it a file of yours, or remove it"
        raise WriteError(f"cannot write {file}: {error.strerror}", hint) from None
    with files.hold(handle):  # another door may be making it
        os.fchmod(handle, 0o600)
        written = os.pread(handle, MAX_BYTES, 0).strip()
        if not written:
            written = secrets.token_urlsafe(32).encode()
            os.pwrite(handle, written + b"\n", 0)
            os.fsync(handle)
        return _checked(written, file)


def read_token(file: Path) -> str:
    """Return the token in a file that the user names. Raises VaultError."""
    return _checked(files.read_file(file).strip(), file)


def _checked(written: bytes, file: Path) -> str:
    if not _TOKEN.fullmatch(written):
        why = f"{file} holds no token: 16 to 256 characters without a space"
        raise VaultError(why, "remove it, or write one into it")
    return written.decode()
