"""The transcripts that wait to be taken in: notes of hooks, and of watchers: see `hotpath.grown`."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from vault_index import files
from vault_index.errors import WriteError
from vault_index.hotpath import grown, index_files, log, taking
from vault_index.journal.journal import Journal
from vault_index.journal.lock import make_folder
from vault_index.text.characters import visible_line

_NAME_CHARS = 16  # of a note, a hash in hexadecimal; others are half-written
MAX_PATH_BYTES = 64 * 1024
COMPLAINT_SECONDS = 7 * 86_400
_STAMP = len("2026-03-31 12:00:00 ")


@dataclass(frozen=True, slots=True)
class Note:
    """A transcript that grew. `inode` is that of the note's file, another each time it is written."""

    name: str
    inode: int
    transcript: Path
    at: float = 0.0  # seconds since 1970


def note(journal: Journal, transcripts: Iterable[Path]) -> None:
    """Note that transcripts grew. Raises WriteError."""
    make_folder(journal.folder)
    with files.writing(journal.folder):
        for transcript in transcripts:
            grown.note(str(journal.folder), str(transcript))


def waiting(journal: Journal) -> list[Note]:
    """Return the transcripts that wait to be taken in, the oldest note first."""
    return _notes(journal, lambda name: len(name) == _NAME_CHARS)


def ended(journal: Journal) -> list[Note]:
    """Return the transcripts whose sessions ended, to be learned from, the oldest note first."""
    return _notes(journal, lambda name: name[_NAME_CHARS:] == grown.ENDED)


def _notes(journal: Journal, is_one: Callable[[str], bool]) -> list[Note]:
    try:
        spool = index_files.open_folder(str(journal.folder / grown.FOLDER))
    except OSError:
        return []
    notes: list[tuple[int, Note]] = []
    try:
        names = os.listdir(spool)  # noqa: PTH208  # of the folder that is open
        for name in names:
            if is_one(name):
                with contextlib.suppress(OSError):
                    notes.append(_read(spool, name))
    finally:
        os.close(spool)
    return [written for _, written in sorted(notes, key=lambda pair: pair[0])]


def take_lock(journal: Journal) -> int | None:
    """Take the lock of who takes them in; None if it is held, or nothing was ever noted.

    Raises WriteError.
    """
    try:
        spool = index_files.open_folder(str(journal.folder / grown.FOLDER))
    except OSError:
        return None
    try:
        return taking.take_lock(spool)
    except OSError as error:
        raise WriteError(f"{journal.folder / grown.FOLDER}: {error.strerror}") from None
    finally:
        os.close(spool)


def remove(journal: Journal, written: Note) -> None:
    """Remove a note, unless the transcript was noted again since. Raises WriteError."""
    file = journal.folder / grown.FOLDER / written.name
    aside = file.with_name(f"{written.name}.taken")
    with files.writing(file), contextlib.suppress(FileNotFoundError):
        file.replace(aside)
        if aside.stat().st_ino == written.inode:
            aside.unlink()
        else:
            aside.replace(file)


def complain(journal: Journal, message: str) -> None:
    """Write why something could not be taken in where `complaints` finds it; a full disk loses it."""
    with contextlib.suppress(OSError):
        spool = grown.open_spool(str(journal.folder))
        try:
            stamp = time.strftime("%Y-%m-%d %H:%M:%S")
            line = f"{stamp} {visible_line(message)}\n"
            log.append(spool, taking.LOG, line.encode("utf-8", "replace"))
        finally:
            os.close(spool)


def complaints(journal: Journal) -> list[str]:
    """Return what could not be taken in during the last days, each reason once, the latest last."""
    oldest = time.strftime("%Y-%m-%d", time.localtime(time.time() - COMPLAINT_SECONDS))
    try:
        text = (journal.folder / grown.FOLDER / taking.LOG).read_text("utf-8", "replace")
    except OSError:
        return []
    recent = [line for line in text.splitlines() if line[:10] >= oldest and len(line) > _STAMP]
    return list({line[_STAMP:]: line for line in recent}.values())


def _read(spool: int, name: str) -> tuple[int, Note]:
    handle = index_files.open_in(spool, name, os.O_RDONLY)
    try:
        now = os.fstat(handle)
        transcript = Path(os.fsdecode(os.read(handle, MAX_PATH_BYTES)))
    finally:
        os.close(handle)
    return now.st_mtime_ns, Note(name, now.st_ino, transcript, now.st_mtime)
