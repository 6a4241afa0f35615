"""Take in the transcripts that are on this machine already, as many as there are.

Two processes read and redact where there is much, this one writes, in the order in which the transcripts
were changed last: however often it is interrupted, a finished import leaves the same files. Which
transcripts have nothing new is in `transcripts.json` beside the index, a cache: without it they are
read once more.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue

from vault_index import files
from vault_index.errors import VaultError, WriteError
from vault_index.files.private import make_folder
from vault_index.journal import places, projects, take
from vault_index.journal.journal import Journal, held
from vault_index.journal.places import Transcript
from vault_index.journal.record import Session
from vault_index.journal.redact import LeftOut
from vault_index.journal.take import Kept, Taken

# A process that reads transcripts for an import, while others are written: `python -m` this module.
#
# It reads a request a line, JSON `[transcript, agent, session file or null]`, and writes an answer
# for
# each: its length in eight bytes, then a pickled (session, session as its file had it) or a
# VaultError. It
# ends with its input, so that it never outlives who started it.

Answer = tuple[Session, Session | None]


class Worker:
    """The other side: one per thread of the import, each with a process of its own."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, "go"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the import, which closes the pipe
        )
        self._lock = threading.Lock()

    def read(self, file: Path, agent: str, session_file: Path | None) -> Answer:
        """Return what `take.read` returns. Raises VaultError, also if the process ended."""
        request = [str(file), agent, str(session_file) if session_file else None]
        with self._lock:
            assert self._process.stdin
            assert self._process.stdout
            try:
                self._process.stdin.write(json.dumps(request).encode() + b"\n")
                self._process.stdin.flush()
                size = int.from_bytes(self._process.stdout.read(8), "big")
                data = self._process.stdout.read(size)
            except (OSError, ValueError):  # it was ended meanwhile
                size, data = 0, b""
        if not size or len(data) < size:
            raise VaultError(f"{file} cannot be read: the process that read it ended")
        answer = pickle.loads(data)  # of our own process
        if isinstance(answer, VaultError):
            raise answer
        return answer  # type: ignore[no-any-return]

    def end(self) -> None:
        """End the process, whatever it is doing."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """Close the pipes, when nobody waits for an answer any more."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                with suppress(OSError):  # what was not sent
                    pipe.close()


def answered(request: bytes, read: Callable[[Path, str, Path | None], Answer]) -> bytes:
    """Return the pickled answer to a request."""
    file, agent, session_file = json.loads(request)
    try:
        answer = read(Path(file), agent, Path(session_file) if session_file else None)
    except VaultError as error:
        return pickle.dumps(VaultError(error.message, error.hint))
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        return pickle.dumps(VaultError(f"{file} cannot be read: {error}"))
    return pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)


def main() -> None:
    """Answer until there are no more requests."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    output = sys.stdout.buffer
    try:
        for line in sys.stdin.buffer:
            data = answered(line, take.read)
            output.write(len(data).to_bytes(8, "big") + data)
            output.flush()
    except BrokenPipeError:  # the import was killed
        os._exit(1)


if __name__ == "__main__" and sys.argv[1:] == ["go"]:
    main()


DAYS = 30
CACHE = "transcripts.json"
WORKERS = 2
_MUCH = 24 * 1024 * 1024  # bytes of transcripts from which on other processes are worth their start
_AHEAD = 3  # transcripts a worker that are read before they are written
_SAVE_SECONDS = 5.0  # what a kill costs
_PEEK = 256 * 1024  # bytes of a transcript in which its folder is looked for
_CWD = re.compile(rb'"cwd":\s*("(?:[^"\\]|\\.)*")')

Progress = Callable[[int, int], None]  # bytes that are done, bytes in all


@dataclass(slots=True)
class Imported:
    """What an import did, or with `dry_run` would do. `problems` are (path, message)."""

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
    problems: list[tuple[str, str]] = field(default_factory=list)
    seconds: float = 0.0


def import_all(
    journal: Journal,
    since: float | None = None,
    project: str = "",
    *,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Imported:
    """Take in all transcripts changed since a time (seconds since 1970; by default 30 days ago).

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
    due = [one for one in _due(limit, done, cache) if not project or _is_of(journal, one, project)]
    total, size = sum(one.size for one in due), 0
    there = take.look_at_sessions(journal.folder)
    out = LeftOut(journal.config.journal_left_out)
    with _answers(due, there) as answers:
        for one, answer in answers:
            try:
                taken = _taken(journal, one, answer, there, out, project, dry_run)
            except VaultError as error:
                done.problems.append((str(one.path), error.message))
            else:
                _count(done, one, taken)
                cache.note(one, taken)
            size += one.size
            if progress:
                progress(size, total)
            if not dry_run:
                cache.save_now_and_then()
    if not dry_run:
        cache.save()
    done.seconds = time.monotonic() - began
    return done


def _due(limit: float, done: Imported, cache: _Cache) -> Iterator[Transcript]:
    for one in places.transcripts():
        if one.mtime < limit * 1e9:
            done.older += 1
        elif cache.has(one):
            done.unchanged += 1
        else:
            yield one


def _is_of(journal: Journal, one: Transcript, project: str) -> bool:
    """Whether a transcript may be of a project: its folder is in its first lines, or is not there."""
    folder = folder_of(one.path)
    return not folder or projects.name_for(journal, folder) == project


def folder_of(file: Path) -> str:
    """Return the folder that a transcript names first, "" if it is not near its beginning."""
    try:
        with file.open("rb") as opened:
            found = _CWD.search(opened.read(_PEEK))
    except OSError:
        return ""
    try:
        return str(json.loads(found[1])) if found else ""
    except ValueError:
        return ""


def _taken(
    journal: Journal,
    one: Transcript,
    answer: Future[Answer],
    there: Kept,
    out: LeftOut,
    project: str,
    dry_run: bool,
) -> Taken:
    """Write what was read, unless somebody else wrote it meanwhile. Raises VaultError."""
    session, before = answer.result()
    if project and projects.name_for(journal, session.folder) != project:
        return Taken(one.path, session.id, why=take.OTHER_PROJECT)
    if dry_run:
        return take.preview(journal, session, before, there)
    with held(journal.folder):
        head = take.head_for(there, one.path)
        if head and (before is None or take.read_session(head.file).read != before.read):
            session, before = take.read(one.path, one.agent, head.file)
        return take.keep(journal, session, before, there, out)


def _count(done: Imported, one: Transcript, taken: Taken) -> None:
    done.transcripts += 1
    done.bytes += one.size
    if taken.why:
        done.nothing[taken.why] = done.nothing.get(taken.why, 0) + 1
        return
    done.sessions += 1
    done.prompts += taken.prompts
    done.records += taken.records
    done.new += taken.new
    done.projects[taken.project] = done.projects.get(taken.project, 0) + 1


@contextmanager
def _answers(
    due: list[Transcript], there: Kept
) -> Iterator[Iterable[tuple[Transcript, Future[Answer]]]]:
    """Yield the transcripts in their order, each with what was read of it."""
    if sum(one.size for one in due) < _MUCH:
        yield ((one, _read_here(one, there)) for one in due)
        return
    idle: SimpleQueue[Worker] = SimpleQueue()
    workers = [Worker() for _ in range(WORKERS)]
    for worker in workers:
        idle.put(worker)

    def read(one: Transcript, session_file: Path | None) -> Answer:
        worker = idle.get()
        try:
            return worker.read(one.path, one.agent, session_file)
        finally:
            idle.put(worker)

    def in_order() -> Iterator[tuple[Transcript, Future[Answer]]]:
        waiting: deque[tuple[Transcript, Future[Answer]]] = deque()
        for one in due:
            head = take.head_for(there, one.path)
            waiting.append((one, pool.submit(read, one, head.file if head else None)))
            if len(waiting) >= WORKERS * _AHEAD:
                yield waiting.popleft()
        yield from waiting

    pool = ThreadPoolExecutor(WORKERS)
    try:
        yield in_order()
    finally:
        for worker in workers:
            worker.end()
        pool.shutdown(wait=True, cancel_futures=True)
        for worker in workers:
            worker.close()


def _read_here(one: Transcript, there: Kept) -> Future[Answer]:
    answer: Future[Answer] = Future()
    head = take.head_for(there, one.path)
    try:
        answer.set_result(take.read(one.path, one.agent, head.file if head else None))
    except VaultError as error:
        answer.set_exception(error)
    return answer


class _Cache:
    """Which transcripts have nothing new: size, mtime and session file ("" if nothing was kept).

    By a hash of the path, which has the id of the session: it may be one that was forgotten.
    """

    def __init__(self, journal: Journal) -> None:
        self._file = journal.folder / ".vault_index" / CACHE
        self._folder = journal.folder
        self._saved = time.monotonic()
        self._is_changed = False
        try:
            read = json.loads(files.read_file(self._file))
            self._entries = {str(path): list(entry) for path, entry in read.items()}
        except (VaultError, ValueError, TypeError, AttributeError, RecursionError):
            self._entries = {}

    def has(self, one: Transcript) -> bool:
        entry = self._entries.get(_key(one.path))
        if entry is None or entry[:2] != [one.size, one.mtime] or len(entry) < 3:
            return False
        return entry[2] == "" or os.path.lexists(self._folder / str(entry[2]))

    def note(self, one: Transcript, taken: Taken) -> None:
        if taken.why == take.OTHER_PROJECT:
            return
        place = str(taken.file.relative_to(self._folder)) if taken.file else ""
        self._entries[_key(one.path)] = [one.size, one.mtime, place]
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
            with files.writing(self._file):
                files.replace_file(self._file, json.dumps(self._entries).encode())
        except WriteError:
            return
        self._is_changed = False


def _key(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:24]
