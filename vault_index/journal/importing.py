"""Capture the transcripts that are on this machine already, as many as there are.

They are taken in the order of their last change, so an interrupted import ends with the same sessions.
The table `transcript` says which have nothing new, by a hash of the path.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from vault_index import state
from vault_index.errors import VaultError
from vault_index.features import JournalTable
from vault_index.journal import capture, projects
from vault_index.journal.capture import Captured
from vault_index.journal.excluded import Exclude
from vault_index.journal.journal import Journal
from vault_index.transcripts import reading
from vault_index.transcripts.reading import Transcript

DAYS = 30
Progress = Callable[[int, int], None]  # bytes that are done, bytes in all


@dataclass(slots=True)
class Imported:
    """The result of an import; with `dry_run` the one it would have."""

    transcripts: int = 0  # that were read
    bytes: int = 0  # of those
    unchanged: int = 0
    older: int = 0  # than was asked for
    sessions: int = 0
    prompts: int = 0
    records: int = 0
    new: int = 0  # records
    nothing: dict[str, int] = field(default_factory=dict)  # why nothing was kept -> transcripts
    projects: dict[str, int] = field(default_factory=dict)  # -> sessions
    problems: list[str] = field(default_factory=list)
    by_words: int = 0  # sessions whose vectors are still to be made
    seconds: float = 0.0


def import_all(
    journal: Journal,
    since: float | None = None,
    project: str = "",
    *,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Imported:
    """Capture all transcripts changed since a time (seconds since 1970; by default 30 days ago).

    One that cannot be read, or whose session cannot be written, is a problem of the result, and the
    others go on. Raises WriteError where nothing can be written at all.
    """
    began = time.monotonic()
    result = Imported()
    limit = time.time() - DAYS * 86400 if since is None else since
    if not dry_run:
        with state.writing(journal.home):
            pass
    due = [
        file
        for file in _due(journal, limit, result)
        if not project or _is_of(journal, file, project)
    ]
    total, size = sum(file.size for file in due), 0
    exclude = Exclude(journal.config[JournalTable].exclude)
    for file in due:
        try:
            captured = _capture(journal, file, exclude, project, dry_run)
        except VaultError as error:
            result.problems.append(f"{file.path}: {error.message}")
        else:
            _count(result, file, captured)
            if not dry_run and captured.why != capture.OTHER_PROJECT:
                with state.writing(journal.home) as db:
                    row = (key_of(file.path), file.size, file.mtime)
                    db.execute("INSERT OR REPLACE INTO transcript VALUES (?, ?, ?)", row)
        size += file.size
        if progress:
            progress(size, total)
    result.seconds = time.monotonic() - began
    return result


def project_names(journal: Journal) -> set[str]:
    """Return the names that the projects of this machine's transcripts have, or would have."""
    folders = {reading.folder_of(file.path) for file in reading.transcripts()}
    return {projects.name_for(journal, folder) for folder in folders if folder}


def _due(journal: Journal, limit: float, result: Imported) -> Iterator[Transcript]:
    with state.reading(journal.home) as db:
        imported = set(db.execute("SELECT hash, size, mtime FROM transcript"))
    for file in reading.transcripts():
        if file.mtime < limit * 1e9:
            result.older += 1
        elif (key_of(file.path), file.size, file.mtime) in imported:
            result.unchanged += 1
        else:
            yield file


def _is_of(journal: Journal, file: Transcript, project: str) -> bool:
    """Whether a transcript may be of a project: its folder is in its first lines, or is not there."""
    folder = reading.folder_of(file.path)
    return not folder or projects.name_for(journal, folder) == project


def _capture(
    journal: Journal, file: Transcript, exclude: Exclude, project: str, dry_run: bool
) -> Captured:
    try:
        read = capture.read_on(journal, file.path, file.agent)
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        raise VaultError(f"{file.path} cannot be read: {error}") from None
    if project and projects.name_for(journal, read.session.folder) != project:
        return Captured(file.path, why=capture.OTHER_PROJECT)
    return capture.store(journal, read, exclude, dry_run=dry_run)


def _count(result: Imported, file: Transcript, captured: Captured) -> None:
    result.transcripts += 1
    result.bytes += file.size
    if (session := captured.session) is None:
        result.nothing[captured.why] = result.nothing.get(captured.why, 0) + 1
        return
    result.sessions += 1
    result.prompts += session.prompts
    result.records += len(session.records)
    result.new += captured.new
    result.projects[session.project] = result.projects.get(session.project, 0) + 1


def key_of(path: Path) -> str:
    """Return the name of a transcript in the table `transcript`."""
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:24]
