"""Findings about lessons: shape, secrets, prompt injection, duplicates, their own prompts.

`of_text` needs nothing but the file; `against_index` asks the index, in the watcher where there is
one. A check changes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vault_index import categories, git
from vault_index.check import neighbours, prompt_injection, secrets, shape
from vault_index.check.finding import ERROR, WARNING, Finding
from vault_index.errors import LessonError, VaultError
from vault_index.index import shown
from vault_index.lesson import decode

if TYPE_CHECKING:
    from vault_index.vault import Vault

__all__ = [
    "ERROR",
    "WARNING",
    "Candidate",
    "Finding",
    "against_index",
    "everything",
    "named",
    "of_text",
    "staged",
]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A lesson file to check. `path` is relative to the vault's folder."""

    path: str
    data: bytes
    as_on_disk: bool = True


def everything(vault: Vault) -> list[Candidate]:
    """Take all lesson files of a vault."""
    return [_from_disk(vault, file.path) for file in vault.files()[0]]


def named(vault: Vault, paths: Sequence[str]) -> list[Candidate]:
    """Take files and folders by their absolute paths. Raises VaultError for what is no lesson file."""
    files = [file.path for file in vault.files()[0]]
    found: dict[str, None] = {}
    for path in paths:
        inside = _inside(vault, path)
        below = [one for one in files if inside in ("", one) or one.startswith(f"{inside}/")]
        if not below:
            raise VaultError(f"{path}: no lesson file", f"lessons are in {vault.folder}")
        found |= dict.fromkeys(below)
    return [_from_disk(vault, path) for path in found]


def staged(vault: Vault) -> list[Candidate]:
    """Take the lesson files that the next commit adds or changes, as they are staged."""
    candidates = []
    for path in git.staged(vault.folder):
        if not path.endswith(".md") or any(part.startswith(".") for part in path.split("/")):
            continue
        data = git.staged_content(vault.folder, path)
        try:
            same = (vault.folder / path).read_bytes() == data
        except OSError:
            same = False
        candidates.append(Candidate(path, data, same))
    return candidates


def of_text(candidate: Candidate, known: Collection[str] = ()) -> list[Finding]:
    """Check what a file says; `known` are the categories of other lessons, against which to compare."""
    where = shown(candidate.path)
    found, _ = shape.findings(candidate.path, candidate.data, where, known)
    try:
        text = decode(candidate.data, candidate.path).replace("\r\n", "\n")
    except LessonError:
        text = candidate.data.decode("utf-8", "replace")
    found += secrets.findings(where, text)
    found += prompt_injection.findings(where, text)
    return sorted(found)


def against_index(vault: Vault, paths: Sequence[str]) -> dict[str, Any]:
    """Check files as they are on disk against the index, which must know them.

    Gives `findings`, as JSON values, and `categories`: those of all other lessons.
    """
    found = [finding.as_json() for finding in neighbours.findings(vault, paths)]
    mine = {shown(path) for path in paths}
    rows = vault.open_index().store.rows(("path", "categories"))
    others = [row["categories"] for row in rows if row["path"] not in mine]
    return {"findings": found, "categories": sorted({*categories.counts(others)})}


def _from_disk(vault: Vault, path: str) -> Candidate:
    try:
        return Candidate(path, (vault.folder / path).read_bytes())
    except OSError as error:
        raise VaultError(f"{vault.folder / path}: cannot be read: {error.strerror}") from None


def _inside(vault: Vault, path: str) -> str:
    """Give a path relative to the vault's folder; "" for the vault itself.

    The vault or the path may be named through links; a link in the vault keeps its own name.
    """
    kept = Path(os.path.realpath(Path(path).parent)) / Path(path).name
    for given in (path, str(kept), os.path.realpath(path)):
        for base in (vault.folder, vault.root, vault.folder.resolve(), vault.root.resolve()):
            if given == str(base):
                return ""
            if given.startswith(f"{base}/"):
                return given.removeprefix(f"{base}/")
    raise VaultError(f"{path}: not in the vault {vault.root}")
