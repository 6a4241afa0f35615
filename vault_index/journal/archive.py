"""The session files of the journal: where they are, which session each has, and what they say.

The file `forgotten` notes by hashes alone what was forgotten: `session HASH`, `record HASH`, of the id of
a session and of the last uuid of a record, which stays away though its transcript is still there.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain, groupby
from os import DirEntry
from pathlib import Path
from typing import Any

from vault_index import files
from vault_index.errors import VaultError
from vault_index.journal import backlog, projects, session_file
from vault_index.journal.journal import Journal, open_index
from vault_index.journal.record import KINDS, Record, Session, short_id

_MONTH = re.compile(r"\d{4}-\d\d")
_DAY = re.compile(r"(\d{4}-\d\d)-(\d\d)")
_NO_DATE = ("0000-00", "00")  # of a session whose transcript has no times
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")
TOMBSTONES = "forgotten"
_HEAD = 64 * 1024  # bytes; the frontmatter's keys of before `read` are in the first few hundred
_KEY = re.compile(rb"^(session|transcript): (.*)$", re.MULTILINE)
_UUIDS = re.compile(rb'"uuids": \[([^\]]*)\]')
_MARK = b"\n<!-- record "
_RECORD = re.compile(rb'^<!-- record \{"id": "[^"]*-([pos])[\d.]*"', re.MULTILINE)
_LETTERS = {kind[0].encode(): kind for kind in KINDS}
_RECORD_ID = re.compile(r".+-(?:[po]\d[\d.]*|s)")


# Where they are.


def path_of(session: Session) -> str:
    """Return the path of a session's file below the journal: `<project>/<year-month>/<day>-<id>.md`."""
    date = _DAY.match(session.began)
    month, day = (date[1], date[2]) if date else _NO_DATE
    return f"{session.project}/{month}/{day}-{file_name(session.id) or 'session'}.md"


def file_name(session: str) -> str:
    """Return the name of a session's file after its day; a beginning of the id begins the name."""
    return _UNSAFE.sub("-", short_id(session))


def name_in(file: Path) -> str:
    """Return the part of a session file's name after its day."""
    return file.stem.partition("-")[2]


def all_files(folder: Path, project: str = "", named: str = "") -> Iterator[Path]:
    """Yield the session files of a journal, or of one project in it, in order of their names.

    `named` is the beginning of the session's part of the name, see `file_name`: only such files.
    """
    for month in _months(folder, project):
        yield from (Path(entry.path) for entry in _sessions_in(month, named))


def months(folder: Path, project: str = "") -> Iterator[list[Path]]:
    """Yield the session files of each month, of a journal or one project in it, the latest first."""
    named = sorted(_months(folder, project), key=lambda month: month.name, reverse=True)
    for _, same in groupby(named, key=lambda month: month.name):
        yield [Path(entry.path) for month in same for entry in _sessions_in(month)]


def stamps(folder: Path) -> Iterator[tuple[str, files.Stamp]]:
    """Yield the path of each session file, from the journal's folder, and its stamp.

    One question a file: of 5,000 it takes 40 ms.
    """
    for month in _months(folder):
        for entry in _sessions_in(month):
            with contextlib.suppress(OSError):  # removed since it was listed
                stamp = files.stamp_of(entry.stat(follow_symlinks=False))
                yield f"{month.parent.name}/{month.name}/{entry.name}", stamp


def _months(folder: Path, project: str = "") -> list[Path]:
    above = [folder / project] if project else files.folders_in(folder)
    return [
        month for each in above for month in files.folders_in(each) if _MONTH.fullmatch(month.name)
    ]


def _sessions_in(month: Path, named: str = "") -> list[DirEntry[str]]:
    there = [
        entry
        for entry in files.entries_in(month)
        if entry.name.endswith(".md")
        and not entry.name.startswith(".")
        and (not named or entry.name.partition("-")[2].startswith(named))
        and entry.is_file(follow_symlinks=False)
    ]
    return sorted(there, key=lambda entry: entry.name)


# Which session each has, by the first bytes alone.


@dataclass(frozen=True, slots=True)
class Head:
    """Which session a file is of, and from which transcript."""

    file: Path
    session: str
    transcript: str


@dataclass(slots=True)
class Catalog:
    """The journal as it was when somebody looked: heads by session and transcript, uuids' hashes."""

    by_session: dict[str, list[Head]] = field(default_factory=dict)
    by_transcript: dict[str, Head] = field(default_factory=dict)
    uuids: dict[int, str] = field(default_factory=dict)  # -> the session that was captured first
    has_uuids: bool = False
    names: set[str] = field(default_factory=set)  # of the files, without the day

    def add(self, head: Head | None) -> None:
        """Note a session file; None is one without a head."""
        if head is not None:
            heads = self.by_session.setdefault(head.session, [])
            heads[:] = [other for other in heads if other.file != head.file] + [head]
            self.by_transcript[head.transcript] = head
            self.names.add(name_in(head.file))

    def moved_from(self, session: str) -> Head | None:
        """Return the head of a session whose transcript is gone from where it was read."""
        heads = self.by_session.get(session, ())
        return next((head for head in heads if not Path(head.transcript).exists()), None)

    def head_for(self, transcript: Path) -> Head | None:
        """Return the head of a transcript's session, also if the transcript was moved since."""
        stem = transcript.stem.removeprefix("agent-")
        return (
            self.by_transcript.get(str(transcript))
            or self.moved_from(stem)
            or self.moved_from(stem[-36:])
        )

    def load_uuids(self, folder: Path) -> None:
        """Add the uuids of a journal's session files, in the order in which their sessions began."""
        for file in sorted(all_files(folder), key=lambda file: (file.parent.name, file.name)):
            with contextlib.suppress(VaultError):
                data = files.read_file(file)
                if head := _head_in(data[:_HEAD], file):
                    for uuid in b", ".join(_UUIDS.findall(data)).split(b", "):
                        text = uuid[1:-1].decode("utf-8", "replace")
                        self.uuids.setdefault(hash(text), head.transcript)
        self.has_uuids = True

    def add_uuids(self, session: Session) -> None:
        """Note the uuids of a session's records."""
        for record in session.records:
            for uuid in record.uuids:
                self.uuids.setdefault(hash(uuid), session.transcript)

    def is_copy(self, record: Record, transcript: str) -> bool:
        """Whether another transcript's records have all uuids of a record."""
        return bool(record.uuids) and all(
            self.uuids.get(hash(uuid), transcript) != transcript for uuid in record.uuids
        )


def catalog(folder: Path, transcript: Path | None = None) -> Catalog:
    """Return what a journal has, without uuids: all, or at least what it has of one transcript."""
    there = Catalog()
    if transcript is not None:
        stem = transcript.stem.removeprefix("agent-")
        for name in {file_name(stem), file_name(stem[-36:])}:  # a rollout's name ends with its id
            for file in all_files(folder, named=name):
                there.add(head_of(file))
        if str(transcript) in there.by_transcript or len(stem) >= 36:
            return there
    for file in all_files(folder):
        there.add(head_of(file))
    return there


def head_of(file: Path) -> Head | None:
    """Return the head of a session file; None if it has none or cannot be read."""
    try:
        with file.open("rb") as opened:
            return _head_in(opened.read(_HEAD), file)
    except OSError:
        return None


def _head_in(data: bytes, file: Path) -> Head | None:
    values = dict.fromkeys((b"session", b"transcript"), "")
    for key, value in _KEY.findall(data.partition(b"\n---\n")[0]):
        with contextlib.suppress(ValueError):  # damaged
            values[key] = session_file.scalar_of(value.decode("utf-8", "replace"))
    return Head(file, *values.values()) if values[b"session"] else None


def tombstones(folder: Path) -> frozenset[str]:
    """Return the lines of what was forgotten. Raises VaultError if the file cannot be read."""
    file = folder / TOMBSTONES
    try:
        text = file.read_text("utf-8")
    except FileNotFoundError:
        return frozenset()
    except (OSError, ValueError) as error:
        raise VaultError(f"{file} cannot be read: {error}", f"make {file} readable") from None
    return frozenset(line.strip() for line in text.splitlines())


def bury(folder: Path, stones: Iterable[str]) -> None:
    """Note what is forgotten, for good. Raises WriteError."""
    lines = sorted(tombstones(folder) | set(stones))
    files.replace_file(folder / TOMBSTONES, "".join(f"{line}\n" for line in lines).encode())


def stone_of_session(session: str) -> str:
    """Return the line that says that a session was forgotten."""
    return f"session {_hash(session)}"


def stone_of_record(record: Record) -> str:
    """Return the line that says that a record was forgotten; "" for one without uuids.

    By its last uuid: the first of an observation is that of its prompt.
    """
    return f"record {_hash(record.uuids[-1])}" if record.uuids else ""


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:24]


# What they say.


def read(file: Path) -> Session:
    """Read a session file. Raises VaultError, which names it and the line."""
    return session_file.parse(files.read_file(file), file)


def latest(
    journal: Journal, project: str = "", since: str = "", until: str = "", limit: int = 20
) -> list[tuple[Path, Session]]:
    """Return so many sessions that began last in a time, the latest first.

    Times are ISO 8601. A file that cannot be read is passed over: `overview` names it. Only of those
    that are returned more than the head is parsed.
    """
    there: list[tuple[Path, Session]] = []
    by_day = (
        groupby(sorted(of_month, key=day_of, reverse=True), key=day_of)
        for of_month in months(journal.folder, project)
    )
    for day, of_day in chain.from_iterable(by_day):
        if until and day > until[:10]:
            continue
        if len(there) >= limit or (since and day < since[:10]):
            break
        heads = [read for file in of_day if (read := _read_head(file))]
        for file, data, head in sorted(heads, key=lambda read: read[2].began, reverse=True):
            inside = (not since or head.began >= since) and (not until or head.began < until)
            if inside and len(there) < limit:
                with contextlib.suppress(VaultError):
                    there.append((file, session_file.parse(data, file)))
    return there


def days(journal: Journal, project: str = "") -> dict[str, int]:
    """Count the sessions of each day, `2026-11-22`, from the names of their files alone."""
    counts = Counter(day_of(file) for month in months(journal.folder, project) for file in month)
    return dict(sorted(counts.items()))


def day_of(file: Path) -> str:
    """Return the day of a session file, `2026-11-22`."""
    return f"{file.parent.name}-{file.name[:2]}"


def _read_head(file: Path) -> tuple[Path, bytes, Session] | None:
    """Return a session file with its bytes and its session without records; None for a damaged one."""
    try:
        data = files.read_file(file)
        return file, data, session_file.parse(data.partition(_MARK)[0], file)
    except VaultError:
        return None


def find(journal: Journal, name: str) -> tuple[Path, Session, tuple[Record, ...]]:
    """Return a session, named by its id, the beginning of that, or one of its records, and its records.

    A record's id gives only that record. Raises VaultError if nothing has the name, or several.
    """
    is_record = _RECORD_ID.fullmatch(name) is not None
    called = file_name(name.rpartition("-")[0] if is_record else name)
    there = _named(name, is_record, all_files(journal.folder, named=called))
    if not there:  # the beginning of an id that the file is not called by: UUID 7
        there = _named(name, is_record, all_files(journal.folder))
    if not there:
        raise VaultError(
            f"nothing in the journal is named {name!r}", "look for it: lessons journal sessions"
        )
    if len(there) > 1:
        ids = ", ".join(sorted(session.id for _, session in there)[:5])
        raise VaultError(f"{name!r} may be {ids}", "name more of it")
    file, session = there[0]
    chosen = [each for each in session.records if not is_record or each.id == name]
    return file, session, tuple(chosen)


def _named(name: str, is_record: bool, some: Iterable[Path]) -> list[tuple[Path, Session]]:
    """Return those of these session files that a name is the name of."""
    wanted = (f'"id": "{name}"' if is_record else name).encode("utf-8", "replace")
    there: list[tuple[Path, Session]] = []
    for file in some:
        data = files.read_file(file)
        if wanted in (data if is_record else data.partition(_MARK)[0]):
            session = session_file.parse(data, file)
            names = (short_id(session.id), *(each.id for each in session.records))
            if session.id.startswith(name) or name in names:
                there.append((file, session))
    return there


def overview(journal: Journal) -> dict[str, Any]:
    """Return what is recorded and kept, when it was written last, and what went wrong, as JSON values.

    For `lessons status` and `lessons journal status`. Reads only, and of a session only the head.
    """
    size, unread, last = 0, 0, 0.0
    of_projects, records = Counter[str](), Counter[bytes]()
    problems: list[str] = []
    for file in all_files(journal.folder):
        try:
            data = files.read_file(file)
            head = session_file.parse(data.partition(_MARK)[0], file)
            last = max(last, file.stat().st_mtime)
        except VaultError as error:
            problems.append(error.message)
            continue
        except OSError:  # removed meanwhile
            continue
        size += len(data)
        unread += head.unread  # lines of transcripts of a kind that nobody described
        of_projects[head.project] += 1
        records.update(_RECORD.findall(data))
    return {
        "folder": str(journal.folder),
        "recorded": projects.recorded_folders(journal),
        "sessions": of_projects.total(),
        "records": {kind: records[letter] for letter, kind in _LETTERS.items()},
        "projects": dict(of_projects),
        "mb": size / 1e6,
        "last": datetime.fromtimestamp(last, UTC).isoformat() if last else "",
        "unread": unread,
        "waiting": len(backlog.waiting(journal)),
        "index": _index(journal) if of_projects else {},
        "problems": problems,
        "complaints": backlog.complaints(journal),
    }


def _index(journal: Journal) -> dict[str, Any]:
    try:
        opened = open_index(journal)
    except VaultError as error:
        return {"error": error.message}
    return {"embedder": opened.embedder, "sessions": opened.sessions}
