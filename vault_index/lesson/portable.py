"""Names of files that any disk of a team can hold: Linux, macOS and Windows.

A name that Windows refuses stops the checkout of the whole repository there, and two names that differ in
their case alone are one file on most disks of macOS and Windows. The rules are those of
"Naming Files, Paths, and Namespaces" (Microsoft Learn) and of git's `core.protectNTFS`.
"""

from __future__ import annotations

import re

from vault_index.errors import VaultError
from vault_index.text.blocks import composed

MAX_PATH = 180  # characters from the vault's root: of 260 on Windows, without where the clone is
_DEVICE = re.compile(
    r"(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)[ .]*(?:[.:].*)?", re.IGNORECASE
)
_GIT = re.compile(r"git~\d+", re.IGNORECASE)  # the short name of `.git`
_CHARACTERS = re.compile(r'[<>:"|?*\\\x00-\x1f]')
_ENDING = ".md"
_IN_PLACE = "-lesson"  # after the name of a device


def key(path: str) -> str:
    """Return a key that is equal for paths that are one on a disk which ignores case."""
    return composed(composed(path).casefold())


def problem(path: str) -> str:
    """Return the reason for which some disks cannot hold a path, "" if all can."""
    for name in path.split("/"):
        if _DEVICE.fullmatch(name):
            return f"{name} is a device on Windows"
        if _GIT.fullmatch(name):
            return f"{name} means .git on Windows"
        if found := _CHARACTERS.search(name):
            return f"no name on Windows may have {found[0]!r}"
        if name.removesuffix(_ENDING)[-1:] in (".", " "):
            return f"{name!r} ends with a dot or a space, which Windows drops"
    if len(path) > MAX_PATH:
        return f"the path has {len(path)} characters, and Windows takes about {MAX_PATH}"
    return ""


def file_name(stem: str) -> str:
    """Return the name of a new lesson's file, without `.md`, as any disk can hold it."""
    name = _CHARACTERS.sub("-", stem).rstrip(". ")
    is_taken = _DEVICE.fullmatch(name) or _GIT.fullmatch(name)
    return f"{name.replace('.', '-')}{_IN_PLACE}" if is_taken else name


def refuse_folder(path: str) -> None:
    """Raise VaultError for a folder that some disks cannot hold."""
    if why := problem(path):
        raise VaultError(f"no folder can be {path}: {why}", "choose another name")
