"""The transcripts that wait for capture, as hooks and watchers noted them: see `hotpath.spool`."""

from __future__ import annotations

import contextlib
import fnmatch
import os
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from vault_index import files
from vault_index.errors import VaultError, unreadable
from vault_index.files import make_folder
from vault_index.hotpath import index_files, log, spool, start
from vault_index.journal.journal import Journal
from vault_index.store import ownership
from vault_index.text.quote import visible_line

_NAME_CHARS = 16  # of a note, a hash in hexadecimal; others are half-written
COMPLAINT_SECONDS = 7 * 86_400
_TIME, _STAMP = "%Y-%m-%d %H:%M:%S", len("2026-03-31 12:00:00 ")


@dataclass(frozen=True, slots=True)
class Note:
    """A transcript that grew. `inode` is the inode of the note's file, a new one with each write."""

    name: str
    inode: int
    transcript: Path
    at: float = 0.0  # seconds since 1970


def add(journal: Journal, transcripts: Iterable[Path]) -> None:
    """Note that transcripts grew. Raises WriteError."""
    make_folder(journal.folder)
    with files.writing(journal.folder):
        for transcript in transcripts:
            spool.note(str(journal.folder), str(transcript))


def ended(journal: Journal) -> list[Note]:
    """Return the transcripts whose sessions ended, to be learned from, the oldest note first."""
    return waiting(journal, spool.ENDED)


def waiting(journal: Journal, suffix: str = "") -> list[Note]:
    """Return the transcripts that wait for capture, the oldest note first. Raises UnreadableError."""
    folder, notes = journal.folder / spool.FOLDER, list[Note]()
    for name in fnmatch.filter(files.names_in(folder), f"{'?' * _NAME_CHARS}{suffix}"):
        with contextlib.suppress(OSError, VaultError):  # removed meanwhile
            now = (folder / name).stat(follow_symlinks=False)
            path = os.fsdecode(files.read_file(folder / name))
            notes.append(Note(name, now.st_ino, Path(path), now.st_mtime))
    return sorted(notes, key=lambda note: note.at)


def remove(journal: Journal, note: Note) -> None:
    """Remove a note, unless the transcript was noted again since. Raises WriteError."""
    file = journal.folder / spool.FOLDER / note.name
    aside = file.with_name(f"{note.name}.taken")
    with files.writing(file), contextlib.suppress(FileNotFoundError):
        file.replace(aside)
        if aside.stat().st_ino == note.inode:
            aside.unlink()
        else:
            aside.replace(file)


def forget(journal: Journal, transcripts: Collection[str]) -> None:
    """Remove all that the spool has of transcripts: notes, also half-written ones, and lines of its log.

    Raises UnreadableError, WriteError.
    """
    folder, paths = journal.folder / spool.FOLDER, {os.fsencode(each) for each in transcripts}
    for name in files.names_in(folder) if paths else ():
        file = folder / name
        data = files.read_if_any(file) or b""
        with files.writing(file):
            if name in (start.LOG, f"{start.LOG}.old"):
                lines = [
                    line for line in data.splitlines(True) if not any(p in line for p in paths)
                ]
                if b"".join(lines) != data:
                    files.replace_file(file, b"".join(lines))
            elif data in paths or (
                data and "." in name and any(path.startswith(data) for path in paths)
            ):
                file.unlink(missing_ok=True)


def lock(journal: Journal) -> int | None:
    """Take the lock of the process that captures; None if it is held, or nothing was ever noted.

    Raises WriteError.
    """
    folder = journal.folder / spool.FOLDER
    if not folder.is_dir():
        return None
    with files.writing(folder), ownership.opened(folder) as opened:
        return start.take_lock_in(opened, start.LOCK)


def complain(journal: Journal, message: str) -> None:
    """Write why something could not be captured where `complaints` finds it; a full disk loses it."""
    folder = journal.folder / spool.FOLDER
    with contextlib.suppress(OSError), ownership.opened(folder, make=True) as opened:
        stamp = time.strftime(_TIME)
        line = f"{stamp} {visible_line(message)}\n"
        log.append(opened, start.LOG, line.encode("utf-8", "replace"))


def complaints(journal: Journal) -> list[str]:
    """Return the failures to capture of the last days, each reason once, the latest last."""
    file = journal.folder / spool.FOLDER / start.LOG
    try:
        text = index_files.read(file).decode("utf-8", "replace")
    except FileNotFoundError:
        return []
    except OSError as error:
        return [unreadable(file, error).message]
    now = time.time()
    first, last = (
        time.strftime(_TIME, time.localtime(now + seconds))
        for seconds in (-COMPLAINT_SECONDS, COMPLAINT_SECONDS)  # the clock may have been put back
    )
    recent = [
        line for line in text.splitlines() if first <= line[: _STAMP - 1] <= last and line[_STAMP:]
    ]
    return list({line[_STAMP:]: line for line in recent}.values())
