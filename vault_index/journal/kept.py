"""What is in the journal already, asked of its files: sessions by id and transcript, uuids, tombstones.

What was forgotten is noted by hashes alone, in `forgotten`: `session HASH`, `record HASH`, of the id of
a session and of the last uuid of a record, which stays away though its transcript is still there.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from vault_index import files
from vault_index.errors import VaultError
from vault_index.journal import places, session_file
from vault_index.journal.record import Record, Session, short_id

FORGOTTEN = "forgotten"
_HEAD = 64 * 1024  # bytes; the frontmatter's keys of before `read` are in the first few hundred
_KEY = re.compile(rb'^(session|transcript|project): ("?)(.*?)\2$', re.MULTILINE)
_UUIDS = re.compile(rb'"uuids": \[([^\]]*)\]')


@dataclass(frozen=True, slots=True)
class Head:
    """Which session a file is of, and from which transcript."""

    file: Path
    session: str
    transcript: str


@dataclass(slots=True)
class Kept:
    """The journal as it was when somebody looked: heads by session and transcript, uuids' hashes."""

    by_session: dict[str, list[Head]] = field(default_factory=dict)
    by_transcript: dict[str, Head] = field(default_factory=dict)
    uuids: dict[int, str] = field(default_factory=dict)  # -> the session that was taken first
    has_uuids: bool = False
    names: set[str] = field(default_factory=set)  # of the files, without the day

    def add(self, head: Head) -> None:
        """Note a session file."""
        heads = self.by_session.setdefault(head.session, [])
        heads[:] = [other for other in heads if other.file != head.file] + [head]
        self.by_transcript[head.transcript] = head
        self.names.add(head.file.stem.partition("-")[2])

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


def look(folder: Path) -> Kept:
    """Return all that a journal has, without uuids."""
    kept = Kept()
    for file in places.session_files(folder):
        if head := head_of(file):
            kept.add(head)
    return kept


def look_for(folder: Path, transcript: Path) -> Kept:
    """Return what a journal has of one transcript: session files that its name leads to."""
    stem = transcript.stem.removeprefix("agent-")
    names = {short_id(stem), short_id(stem[-36:])}  # the id is the end of a rollout's name
    kept = Kept()
    for name in names:
        pattern = "".join(char if char.isalnum() else "?" for char in name)
        for file in sorted(folder.glob(f"[!.]*/????-??/??-{pattern}*.md")):
            if head := head_of(file):
                kept.add(head)
    return kept if str(transcript) in kept.by_transcript or len(stem) >= 36 else look(folder)


def head_of(file: Path) -> Head | None:
    """Return the head of a session file; None if it has none or cannot be read."""
    try:
        with file.open("rb") as opened:
            return _head_in(opened.read(_HEAD), file)
    except OSError:
        return None


def _head_in(data: bytes, file: Path) -> Head | None:
    values = {
        match[1]: _text(match[2], match[3])
        for match in _KEY.finditer(data.partition(b"\n---\n")[0])
    }
    session = values.get(b"session", "")
    return Head(file, session, values.get(b"transcript", "")) if session else None


def read(file: Path) -> Session:
    """Read a session file. Raises VaultError, which names it and the line."""
    return session_file.parse(files.read_file(file), file)


def load_uuids(kept: Kept, session_files: Iterable[Path]) -> None:
    """Add the uuids of session files, in the order in which their sessions began."""
    for file in sorted(session_files, key=lambda file: (file.parent.name, file.name)):
        try:
            data = files.read_file(file)
        except VaultError:
            continue
        if head := _head_in(data[:_HEAD], file):
            for uuid in _uuids_in(data):
                kept.uuids.setdefault(hash(uuid), head.transcript)
    kept.has_uuids = True


def tombstones(folder: Path) -> frozenset[str]:
    """Return the lines of what was forgotten. Raises VaultError if the file cannot be read."""
    file = folder / FORGOTTEN
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
    with files.writing(folder / FORGOTTEN):
        files.replace_file(folder / FORGOTTEN, "".join(f"{line}\n" for line in lines).encode())


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


def _text(quote: bytes, value: bytes) -> str:
    text = value.decode("utf-8", "replace")
    return text.replace('\\"', '"').replace("\\\\", "\\") if quote else text


def _uuids_in(data: bytes) -> Iterator[str]:
    for some in _UUIDS.findall(data):
        for uuid in some.split(b", "):
            if len(uuid) > 2:
                yield uuid[1:-1].decode("utf-8", "replace")
