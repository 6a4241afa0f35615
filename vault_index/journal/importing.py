"""Capture the transcripts that are on this machine already, as many as there are.

They are taken in the order in which they were changed last: however often it is interrupted, a finished
import leaves the same files. Which transcripts have nothing new is in `transcripts.json` beside the
index, a cache: without it they are read once more.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from vault_index import files
from vault_index.errors import VaultError, WriteError
from vault_index.features import JournalTable
from vault_index.files.private import make_folder
from vault_index.journal import archive, capture, projects
from vault_index.journal.archive import Catalog, Head
from vault_index.journal.capture import Captured
from vault_index.journal.exclude import Exclude
from vault_index.journal.journal import Journal, held
from vault_index.journal.record import Session
from vault_index.transcripts import reading
from vault_index.transcripts.reading import Transcript

DAYS = 30
CACHE = "transcripts.json"
_SAVE_SECONDS = 5.0  # what a kill costs
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
    done = Imported()
    limit = time.time() - DAYS * 86400 if since is None else since
    if not dry_run:
        with held(journal.folder):
            pass
    cache = _Cache(journal)
    due = [
        file for file in _due(limit, done, cache) if not project or _is_of(journal, file, project)
    ]
    total, size = sum(file.size for file in due), 0
    catalog = archive.catalog(journal.folder)
    exclude = Exclude(journal.config[JournalTable].exclude)
    for file in due:
        try:
            captured = _capture(journal, file, catalog, exclude, project, dry_run)
        except VaultError as error:
            done.problems.append(f"{file.path}: {error.message}")
        else:
            _count(done, file, captured)
            cache.note(file, captured)
        size += file.size
        if progress:
            progress(size, total)
        if not dry_run:
            cache.save_now_and_then()
    if not dry_run:
        cache.save()
    done.seconds = time.monotonic() - began
    return done


def project_names(journal: Journal) -> set[str]:
    """Return the names that the projects of this machine's transcripts have, or would have."""
    folders = {reading.folder_of(file.path) for file in reading.transcripts()}
    return {projects.name_for(journal, folder) for folder in folders if folder}


def _due(limit: float, done: Imported, cache: _Cache) -> Iterator[Transcript]:
    for file in reading.transcripts():
        if file.mtime < limit * 1e9:
            done.older += 1
        elif cache.has(file):
            done.unchanged += 1
        else:
            yield file


def _is_of(journal: Journal, file: Transcript, project: str) -> bool:
    """Whether a transcript may be of a project: its folder is in its first lines, or is not there."""
    folder = reading.folder_of(file.path)
    return not folder or projects.name_for(journal, folder) == project


def _capture(
    journal: Journal,
    file: Transcript,
    catalog: Catalog,
    exclude: Exclude,
    project: str,
    dry_run: bool,
) -> Captured:
    """Read a transcript and write its session. Raises VaultError."""
    session, before = _read(file, catalog.head_for(file.path))
    if project and projects.name_for(journal, session.folder) != project:
        return Captured(file.path, session.id, why=capture.OTHER_PROJECT)
    if dry_run:
        return capture.store(journal, session, before, catalog, exclude, dry_run=True)
    with held(journal.folder):
        head = catalog.head_for(file.path)
        if head and (before is None or archive.read(head.file).read != before.read):
            session, before = capture.read(file.path, file.agent, head)
        return capture.store(journal, session, before, catalog, exclude)


def _count(done: Imported, file: Transcript, captured: Captured) -> None:
    done.transcripts += 1
    done.bytes += file.size
    if captured.why:
        done.nothing[captured.why] = done.nothing.get(captured.why, 0) + 1
        return
    done.sessions += 1
    done.prompts += captured.prompts
    done.records += captured.records
    done.new += captured.new
    done.projects[captured.project] = done.projects.get(captured.project, 0) + 1


def _read(file: Transcript, head: Head | None) -> tuple[Session, Session | None]:
    """Return what `capture.read` returns. Raises VaultError."""
    try:
        return capture.read(file.path, file.agent, head)
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        raise VaultError(f"{file.path} cannot be read: {error}") from None


class _Cache:
    """Which transcripts have nothing new: size, mtime and session file ("" if nothing was kept).

    By a hash of the path, which has the id of the session: it may be one that was forgotten.
    """

    def __init__(self, journal: Journal) -> None:
        self._file = journal.folder / ".vault_index" / CACHE
        self._folder = journal.folder
        self._saved = time.monotonic()
        self._is_changed = False
        read = files.read_json(self._file)
        self._entries = {path: entry for path, entry in read.items() if isinstance(entry, list)}

    def has(self, file: Transcript) -> bool:
        entry = self._entries.get(_key(file.path))
        if entry is None or entry[:2] != [file.size, file.mtime] or len(entry) < 3:
            return False
        return entry[2] == "" or os.path.lexists(self._folder / str(entry[2]))

    def note(self, file: Transcript, captured: Captured) -> None:
        if captured.why == capture.OTHER_PROJECT:
            return
        place = str(captured.file.relative_to(self._folder)) if captured.file else ""
        self._entries[_key(file.path)] = [file.size, file.mtime, place]
        self._is_changed = True

    def save_now_and_then(self) -> None:
        if time.monotonic() - self._saved > _SAVE_SECONDS:
            self.save()

    def save(self) -> None:
        """Write the cache, as far as that is possible."""
        self._saved = time.monotonic()
        if not self._is_changed:
            return
        try:
            make_folder(self._file.parent)
            files.replace_file(self._file, json.dumps(self._entries).encode())
        except WriteError:
            return
        self._is_changed = False


def _key(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:24]
