"""Where the proposals of a vault wait, and what is kept of a rejected one to recognise it.

    ~/.lessons/proposals/                  0700, like all below it; files are 0600
      <project>/
        project.toml                       which repository it is: see journal.projects
        <vault>/                           the vault's place in the repository; `vault` at its top
          <id>.md                          a proposal that waits
          rejected.jsonl                   words and vectors of those that a person rejected

All work trees and clones of one repository share the folder, also after a move.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from vault_index import files, git
from vault_index.errors import WriteError
from vault_index.journal import projects
from vault_index.journal.lock import held, make_folder
from vault_index.proposals.sketch import Sketch

if TYPE_CHECKING:
    from vault_index.vault import Vault

FOLDER, REJECTED = "proposals", "rejected.jsonl"
MAX_REJECTED = 2000  # the oldest go first; some 2 kB each
_ID = re.compile(r"[0-9a-f]{8}")
_TOP = "vault"
_UNSAFE = re.compile(r"[^\w.-]+")
_MAX_NAME = 40
_CREATED = re.compile(rb"^created:[ \t]*['\"]?([0-9][0-9T:.+\- Z]+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Shelf:
    """The proposals of all vaults of a user."""

    folder: Path


def folder_of(vault: Vault) -> Path | None:
    """Return where the proposals of a vault are; None before the first. Writes nothing."""
    shelf = Shelf(vault.config.home / FOLDER)
    if not shelf.folder.is_dir():
        return None
    project = projects.known_project(shelf, str(vault.root))
    folder = shelf.folder / project / _place_of(vault)
    return folder if project and folder.is_dir() and not folder.is_symlink() else None


@contextmanager
def opened(vault: Vault) -> Iterator[Path]:
    """Hold the proposals of a vault, whose folder is made if it is missing. Raises WriteError."""
    shelf = Shelf(vault.config.home / FOLDER)
    make_folder(shelf.folder)
    project = shelf.folder / projects.project_of(shelf, str(vault.root))
    make_folder(project)
    folder = project / _place_of(vault)
    with held(folder):
        yield folder


def ids(folder: Path | None) -> list[str]:
    """Return the ids of what waits, oldest first."""
    try:
        names = os.listdir(folder) if folder else []  # noqa: PTH208  # names are all it needs
    except OSError:
        return []
    written: dict[str, int] = {}
    for name in names:
        id = name.removesuffix(".md")
        if folder and id != name and _ID.fullmatch(id):
            with suppress(FileNotFoundError):  # accepted since it was listed
                written[id] = file_of(folder, id).lstat().st_mtime_ns
    return sorted(written, key=lambda id: (written[id], id))


def file_of(folder: Path, id: str) -> Path:
    """Return the file of a proposal."""
    return folder / f"{id}.md"


def read(folder: Path, id: str) -> bytes | None:
    """Return the content of a proposal's file; None if it is gone. Raises WriteError for a link."""
    return files.read_if_any(file_of(folder, id))


def write(folder: Path, id: str, data: bytes) -> Path:
    """Write the file of a proposal and return its path. Raises WriteError."""
    file = file_of(folder, id)
    with files.writing(file):
        files.replace_file(file, data)
    return file


def remove(folder: Path, id: str) -> None:
    """Remove the file of a proposal. Raises WriteError."""
    file = file_of(folder, id)
    with files.writing(file):
        file.unlink(missing_ok=True)


def created(folder: Path, id: str) -> datetime | None:
    """Return when a proposal was made, or its file was written if it does not say; None if it is gone."""
    try:
        data = read(folder, id)
        written = file_of(folder, id).lstat().st_mtime
    except (OSError, WriteError):
        return None
    match = _CREATED.search(data or b"")
    with suppress(ValueError):
        if match:
            moment = datetime.fromisoformat(match[1].decode().strip())
            return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return datetime.fromtimestamp(written, UTC)


def rejected(folder: Path | None) -> Sequence[Sketch]:
    """Return what recognises the rejected ones, oldest first; lines that are damaged are left out."""
    if folder is None:
        return ()
    file = folder / REJECTED
    try:
        stamp = files.stamp_of(file.lstat())
    except OSError:
        return ()
    return _sketches(file, str(stamp))


@lru_cache(maxsize=4)  # a watcher is asked for each proposal, and a person rejects few
def _sketches(file: Path, _stamp: str) -> Sequence[Sketch]:
    data = files.read_if_any(file)
    kept = []
    for line in (data or b"").splitlines():
        try:
            values = json.loads(line)
            numbers = {name: tuple(values.get(name, ())) for name in ("words", "evidence")}
            kept.append(Sketch(**{**values, **numbers}))
        except (ValueError, TypeError, KeyError):
            continue
    return kept


def reject(folder: Path, sketch: Sketch) -> None:
    """Keep what recognises a proposal. Raises WriteError."""
    others = [other for other in rejected(folder) if other.id != sketch.id][1 - MAX_REJECTED :]
    text = "".join(f"{json.dumps(asdict(line))}\n" for line in [*others, sketch])
    with files.writing(folder / REJECTED):
        files.replace_file(folder / REJECTED, text.encode())


def _place_of(vault: Vault) -> str:
    """Return the name for a vault's place in its repository."""
    top = git.top_of(vault.root)
    inside = os.path.relpath(os.path.realpath(vault.root), top) if top else "."
    if inside == ".":
        return _TOP
    name = _UNSAFE.sub("-", inside).strip("-.")[-_MAX_NAME:]
    return f"{name}-{blake2b(os.fsencode(inside), digest_size=3).hexdigest()}"
