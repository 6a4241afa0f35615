"""Which session is meant: one that the journal has, or has from now on."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from vault_index.errors import VaultError
from vault_index.journal import importing, kept, listing, places, projects
from vault_index.journal import take as taking
from vault_index.journal.journal import Journal
from vault_index.journal.places import Transcript
from vault_index.journal.record import Session

LAST = "last"
_LATEST = 20  # sessions of a project among which is one that no agent started
_SOME = 200  # transcripts, changed last, among which one of a project is looked for


def named(journal: Journal, name: str, folder: Path) -> Session:
    """Return a session by its id, the beginning of that, or LAST for the latest in a folder's project.

    What its transcript has more by now is taken in first. Raises VaultError if there is none.
    """
    session = _latest(journal, folder) if name == LAST else _by_id(journal, name)
    file = Path(session.transcript)
    if file.is_file():
        with contextlib.suppress(VaultError):  # as it was when it was read last
            taken = taking.take(journal, file, session.agent)
            if taken.file:
                return kept.read(taken.file)
    return session


def _by_id(journal: Journal, name: str) -> Session:
    try:
        return listing.session_of(journal, name)[1]
    except VaultError:
        there = [one for one in places.transcripts() if _is_named(one, name)]
        if len(name) < 4 or not there:
            raise
        return _taken(journal, there[-1])


def _is_named(one: Transcript, name: str) -> bool:
    stem = one.path.stem
    return (
        stem.startswith(name) or stem.removeprefix("agent-") == name or stem[-36:].startswith(name)
    )


def _latest(journal: Journal, folder: Path) -> Session:
    project = projects.known_project(journal, str(folder))
    sessions = listing.latest(journal, project, limit=_LATEST) if project else []
    session = next((each for _, each in sessions if not each.parent), None)
    newer = next(_newer(folder, session), None)
    if newer:
        try:
            return _taken(journal, newer)
        except VaultError:
            if session is None:
                raise
    if session is None:
        raise VaultError(
            f"the journal has no session of {folder}",
            "name one of `lessons journal sessions`, or record sessions: `lessons install claude`",
        )
    return session


def _newer(folder: Path, session: Session | None) -> Iterator[Transcript]:
    """Yield transcripts of a folder that the journal does not have, changed last first."""
    for one in [*places.transcripts()][::-1][:_SOME]:
        if session and str(one.path) == session.transcript:
            return
        if not one.path.name.startswith("agent-") and importing.folder_of(one.path) == str(folder):
            yield one


def _taken(journal: Journal, one: Transcript) -> Session:
    """Take a transcript in. Raises VaultError if its sessions are not recorded."""
    taken = taking.take(journal, one.path, one.agent)
    if taken.file is None:
        raise VaultError(
            f"session {taken.session or one.path.stem} is not in the journal: {taken.why}",
            "run lessons journal import",
        )
    return kept.read(taken.file)
