"""Where a user's private things about a vault are: by repository, outside of it and of its index.

    ~/.lessons/<kind>/                     0700, like all below it; files are 0600
      <project>/
        project.toml                       which repository it is: see `projects`
        <vault>/                           the vault's place in the repository; `vault` at its top

All work trees and clones of one repository share the folder, also after a move.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from vault_index import git
from vault_index.files.private import make_folder
from vault_index.journal import projects
from vault_index.journal.journal import held

if TYPE_CHECKING:
    from vault_index.vault import Vault

_TOP = "vault"
_UNSAFE = re.compile(r"[^\w.-]+")
_MAX_NAME = 40


@dataclass(frozen=True, slots=True)
class Shelf:
    """The things of one kind, of all vaults of a user."""

    folder: Path


def folder_of(vault: Vault, kind: str) -> Path | None:
    """Return where the things of a kind of a vault are; None before the first. Writes nothing."""
    shelf = Shelf(vault.config.home / kind)
    if not shelf.folder.is_dir():
        return None
    project = projects.known_project(shelf, str(vault.root))
    folder = shelf.folder / project / _place_of(vault)
    return folder if project and folder.is_dir() and not folder.is_symlink() else None


@contextmanager
def opened(vault: Vault, kind: str) -> Iterator[Path]:
    """Hold the things of a kind of a vault, whose folder is made if it is missing. Raises WriteError."""
    shelf = Shelf(vault.config.home / kind)
    make_folder(shelf.folder)
    project = shelf.folder / projects.project_of(shelf, str(vault.root))
    make_folder(project)
    folder = project / _place_of(vault)
    with held(folder):
        yield folder


def _place_of(vault: Vault) -> str:
    """Return the name for a vault's place in its repository."""
    top = git.top_of(vault.root)
    inside = os.path.relpath(os.path.realpath(vault.root), top) if top else "."
    if inside == ".":
        return _TOP
    name = _UNSAFE.sub("-", inside).strip("-.")[-_MAX_NAME:]
    return f"{name}-{blake2b(os.fsencode(inside), digest_size=3).hexdigest()}"
