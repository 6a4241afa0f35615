"""The files of proposals that wait, and the fingerprints of rejected ones.

~/.lessons/proposals/<project>/<vault>/<id>.md        a proposal that waits; see `journal.projects`
                                       <id>.rejected  one that was rejected, for a week
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from vault_index import check, files, git, state
from vault_index.errors import VaultError
from vault_index.hotpath import clock
from vault_index.journal import projects
from vault_index.journal.journal import held
from vault_index.proposals import draft
from vault_index.proposals.draft import Proposal
from vault_index.proposals.fingerprint import Fingerprint

if TYPE_CHECKING:
    from vault_index.vault import Vault

_MAX_PLACE = 40  # characters
REJECTED_SECONDS = 7 * 86_400  # that a rejected one can be taken back
_REJECTED = ".rejected"
_GONE = "propose it again: a rejected one is kept for a week"
_ID = re.compile(r"[0-9a-f]{8}")
_HINT = "see their ids with `lessons review list`"


def folder_of(vault: Vault) -> Path | None:
    """Return the folder of a vault's proposals; None before the first. Writes nothing.

    Raises StateError, and LinkError for a link in its place.
    """
    home = vault.config.home
    project = projects.find_project(home, str(vault.root))
    folder = home / projects.PROPOSALS / project / _place_in_repository(vault)
    files.refuse_links(folder, home)
    return folder if project and os.path.lexists(folder) else None


@contextmanager
def hold(vault: Vault) -> Iterator[Path]:
    """Hold the proposals of a vault, whose folder is made if it is missing. Raises WriteError.

    Those that were rejected more than a week ago go.
    """
    home = vault.config.home
    project = projects.project_of(home, str(vault.root))
    files.make_folder(home / projects.PROPOSALS)  # which raises for a link
    folder = home / projects.PROPOSALS / project / _place_in_repository(vault)
    with held(folder):
        _remove_old(folder)
        yield folder


def _place_in_repository(vault: Vault) -> str:
    top = git.top_of(vault.root)
    inside = os.path.relpath(os.path.realpath(vault.root), top) if top else "."
    if inside == ".":
        return "vault"
    name = projects.UNSAFE.sub("-", inside).strip("-.")[-_MAX_PLACE:]
    return f"{name}-{blake2b(os.fsencode(inside), digest_size=3).hexdigest()}"


def ids(folder: Path | None) -> list[str]:
    """Return the ids of what waits, oldest first. Raises UnreadableError."""
    written: dict[str, int] = {}
    for name in files.names_in(folder) if folder else ():
        id = name.removesuffix(".md")
        if folder and id != name and _ID.fullmatch(id):
            with suppress(FileNotFoundError):  # accepted since it was listed
                written[id] = (folder / name).lstat().st_mtime_ns
    return sorted(written, key=lambda id: (written[id], id))


def count_older(vault: Vault, seconds: float) -> int:
    """Count the proposals that nobody wrote to during the last seconds."""
    folder = folder_of(vault)
    written = [file_of(folder, id).lstat().st_mtime for id in ids(folder)] if folder else []
    return sum(not clock.is_near(time, seconds) for time in written)


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


def set_aside(folder: Path, id: str) -> None:
    """Keep the file of a rejected proposal: see `hold`. Raises WriteError."""
    file = file_of(folder, id)
    with files.writing(file):
        file.replace(folder / f"{id}{_REJECTED}")
        os.utime(folder / f"{id}{_REJECTED}")


def _remove_old(folder: Path) -> None:
    """Remove the files of proposals that were rejected more than a week ago."""
    for name in (name for name in files.names_in(folder) if name.endswith(_REJECTED)):
        file = folder / name
        if not clock.is_near(file.lstat().st_mtime, REJECTED_SECONDS):
            with files.writing(file):
                file.unlink(missing_ok=True)


def bring_back(folder: Path, name: str) -> str:
    """Let a rejected proposal wait again; return its id. Raises VaultError."""
    names = [each for each in files.names_in(folder) if each.endswith(_REJECTED)]
    ids = sorted(each.removesuffix(_REJECTED) for each in names)
    matching = [id for id in ids if name and id.startswith(name.strip().lower())]
    if len(matching) != 1:
        hint = f"name one of {', '.join(ids)}" if ids else _GONE
        raise VaultError(f"no proposal {name!r:.80} was rejected lately", hint)
    (id,) = matching
    with files.writing(file_of(folder, id)):
        (folder / f"{id}{_REJECTED}").replace(file_of(folder, id))
    return id


def rejected(vault: Vault) -> list[Fingerprint]:
    """Return the fingerprints of the rejected ones, oldest first."""
    with state.reading(vault.config.home) as db:
        of = "WHERE place = ? ORDER BY rowid"
        return state.select(db, "rejected", Fingerprint, of, [str(folder_of(vault))])


def forget_rejected(vault: Vault, id: str) -> None:
    """Remove the fingerprint of a rejected proposal. Raises WriteError."""
    with state.writing(vault.config.home) as db:
        folder = str(folder_of(vault))
        db.execute("DELETE FROM rejected WHERE place = ? AND id = ?", [folder, id])


def reject(vault: Vault, fingerprint: Fingerprint) -> None:
    """Keep the fingerprint of a rejected proposal. Raises WriteError."""
    folder = str(folder_of(vault))
    with state.writing(vault.config.home) as db:
        db.execute("DELETE FROM rejected WHERE place = ? AND id = ?", [folder, fingerprint.id])
        state.insert(db, "rejected", fingerprint, place=folder)
