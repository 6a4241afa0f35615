"""The hash of a content."""

from __future__ import annotations

import hashlib


def hash_of_file(data: bytes) -> str:
    """Hash the content of a file, whatever its encoding: see `hash_of`."""
    return hash_of(data.decode("latin-1"))


def hash_of(*texts: str) -> str:
    """Hash texts into 32 hexadecimal digits (SHA-256, first half): the identity of content."""
    return hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()[:32]
