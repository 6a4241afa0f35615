"""The files of proposals that wait, and the fingerprints of rejected ones.

~/.lessons/proposals/<project>/<vault>/      0700; see `journal.projects`
  <id>.md                                    a proposal that waits
  rejected.jsonl                             words and vectors of those that a person rejected
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vault_index import check, files
from vault_index.errors import VaultError
from vault_index.journal import projects
from vault_index.proposals import draft
from vault_index.proposals.draft import Proposal
from vault_index.proposals.fingerprint import Fingerprint

if TYPE_CHECKING:
    from vault_index.vault import Vault

FOLDER, REJECTED = "proposals", "rejected.jsonl"
MAX_REJECTED = 2000  # the oldest go first; some 2 kB each
_ID = re.compile(r"[0-9a-f]{8}")
_HINT = "see their ids with `lessons review list`"


def folder_of(vault: Vault) -> Path | None:
    """Return where the proposals of a vault are; None before the first. Writes nothing."""
    return projects.private_folder(vault, FOLDER)


def hold(vault: Vault) -> AbstractContextManager[Path]:
    """Hold the proposals of a vault, whose folder is made if it is missing. Raises WriteError."""
    return projects.hold_private_folder(vault, FOLDER)


def ids(folder: Path | None) -> list[str]:
    """Return the ids of what waits, oldest first."""
    written: dict[str, int] = {}
    for file in folder.glob("*.md") if folder else ():
        if _ID.fullmatch(file.stem):
            with suppress(FileNotFoundError):  # accepted since it was listed
                written[file.stem] = file.lstat().st_mtime_ns
    return sorted(written, key=lambda id: (written[id], id))


def find_id(folder: Path | None, name: str) -> str:
    """Return the id of a proposal by its beginning. Raises VaultError."""
    matching = [id for id in ids(folder) if name and id.startswith(name.strip().lower())]
    if len(matching) == 1:
        return matching[0]
    if matching:
        some = ", ".join(matching[:4])
        raise VaultError(
            f"{len(matching)} proposals begin with {name!r}: {some}", "give the whole id"
        )
    raise VaultError(f"no proposal {name!r:.80} waits", _HINT)


def file_of(folder: Path, id: str) -> Path:
    """Return the file of a proposal."""
    return folder / f"{id}.md"


def read(folder: Path | None, id: str) -> bytes:
    """Return the content of a proposal's file. Raises VaultError if it is gone or a link."""
    data = files.read_if_any(file_of(folder, id)) if folder else None
    if data is None:
        raise VaultError(f"no proposal {id!r} waits", _HINT)
    return data


def load(folder: Path | None, id: str) -> Proposal:
    """Return a proposal; one that a person broke has an error as its finding."""
    try:
        return draft.from_bytes(id, read(folder, id))
    except VaultError as error:
        finding = {"level": check.ERROR, "rule": "frontmatter", "message": error.message}
        return Proposal(id, "(cannot be read)", "", findings=(finding,))


def write(folder: Path, id: str, data: bytes) -> Path:
    """Write the file of a proposal and return its path. Raises WriteError."""
    file = file_of(folder, id)
    files.replace_file(file, data)
    return file


def remove(folder: Path, id: str) -> None:
    """Remove the file of a proposal. Raises WriteError."""
    file = file_of(folder, id)
    with files.writing(file):
        file.unlink(missing_ok=True)


def rejected(folder: Path | None) -> Sequence[Fingerprint]:
    """Return what recognises the rejected ones, oldest first; damaged lines are left out."""
    if folder is None:
        return ()
    file = folder / REJECTED
    return _fingerprints(file, files.stamp(file))


@lru_cache(maxsize=4)  # a watcher is asked for each proposal, and a person rejects few
def _fingerprints(file: Path, _stamp: tuple[int, ...]) -> Sequence[Fingerprint]:
    def make(values: Any) -> Fingerprint:
        numbers = {name: tuple(values.get(name, ())) for name in ("words", "evidence")}
        return Fingerprint(**{**values, **numbers})

    return files.read_json_lines(file, make)


def reject(folder: Path, own: Fingerprint) -> None:
    """Keep what recognises a proposal. Raises WriteError."""
    others = [other for other in rejected(folder) if other.id != own.id][1 - MAX_REJECTED :]
    files.write_json_lines(folder / REJECTED, [*others, own])
