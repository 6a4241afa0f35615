"""The verdicts about injections, kept for longer than the injections' own record: a private file.

    ~/.lessons/outcomes/<project>/<vault>/ledger.json

An entry for each injection of the last weeks, since its session may go on and is then judged again;
older ones are only counted, per lesson. No prompt, no text and no name of a session's file is in it.
Unlike a cache it stays: neither a new index nor a forgotten session changes what was counted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

from vault_index import files
from vault_index.recall.outcome.judge import OUTCOMES, UNKNOWN
from vault_index.store import injections

FOLDER, FILE = "outcomes", "ledger.json"
VERSION = 1
OPEN_DAYS = 45  # that an injection is kept by itself: agents keep transcripts for 30
MAX_OPEN = 20_000  # injections, some 200 bytes each; the oldest are counted and go


@dataclass(frozen=True, slots=True)
class Tally:
    """How often a lesson was injected, and what agents did with it; the four add up to the first."""

    injected: int = 0
    taken: int = 0
    ignored: int = 0
    contradicted: int = 0
    unknown: int = 0


@dataclass(slots=True)
class Entry:
    """An injection, or a change of names. `verdicts` are those of `lessons`, "" before the first."""

    time: str  # ISO 8601, UTC
    event: str = ""
    session: str = ""
    prompt: str = ""  # its hash
    lessons: list[str] = field(default_factory=list)
    verdicts: list[str] = field(default_factory=list)
    renamed: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Ledger:
    """The verdicts about all injections of a vault."""

    read: dict[str, list[list[int]]] = field(default_factory=dict)  # index folder -> stamps as read
    sessions: dict[str, list[int]] = field(default_factory=dict)  # -> stamp of its file as judged
    open: dict[str, Entry] = field(default_factory=dict)  # by key
    counted: dict[str, list[int]] = field(default_factory=dict)  # lesson -> OUTCOMES
    until: str = ""  # the time up to which injections are only counted

    def add(self, record: Mapping[str, Any]) -> None:
        """Add a record of the injections' file, once; change the names in those before it."""
        entry = Entry(str(record.get("time") or ""), str(record.get("event") or ""))
        if entry.time <= self.until:
            return
        entry.session = str(record.get("session") or "")
        entry.prompt = str(record.get("prompt") or "")
        entry.lessons = [str(lesson) for lesson in record["lessons"]]
        entry.verdicts = [""] * len(entry.lessons)
        renamed = record.get("renamed")
        if isinstance(renamed, dict):
            entry.renamed = {str(old): str(new) for old, new in renamed.items()}
        key = _key(entry)
        if key not in self.open:
            self.rename(entry.renamed)
            self.open[key] = entry

    def rename(self, renamed: Mapping[str, str]) -> None:
        """Count under the new ids what was counted under the old ones, of sections too."""
        if not renamed:
            return
        for entry in self.open.values():
            entry.lessons = [injections.renamed(lesson, renamed) for lesson in entry.lessons]
        counted, self.counted = self.counted, {}
        for lesson, counts in counted.items():
            self._count(injections.renamed(lesson, renamed), counts)

    def judged(self, other: Ledger, sessions: Iterable[str]) -> None:
        """Take over the verdicts about some sessions from a copy of this ledger."""
        for session in sessions:
            self.sessions[session] = other.sessions[session]
        for key, entry in self.open.items():
            theirs = other.open.get(key)
            if theirs and entry.session in other.sessions and all(theirs.verdicts):
                entry.verdicts = list(theirs.verdicts)

    def fold(self, before: str) -> None:
        """Reduce the injections from before a time to counts, and the oldest if there are too many."""
        times = sorted(entry.time for entry in self.open.values())
        if len(times) > MAX_OPEN:
            before = max(before, times[-MAX_OPEN])
        for key in [key for key, entry in self.open.items() if entry.time < before]:
            entry = self.open.pop(key)
            self.until = max(self.until, entry.time)
            for lesson, verdict in zip(entry.lessons, entry.verdicts, strict=True):
                self._count(lesson, [int((verdict or UNKNOWN) == each) for each in OUTCOMES])
        there = {entry.session for entry in self.open.values()}
        self.sessions = {name: stamp for name, stamp in self.sessions.items() if name in there}

    def tallies(self, since: Mapping[str, str] | None = None) -> dict[str, Tally]:
        """Return the tally of each lesson that was ever injected, by id.

        A lesson in `since` counts only from the day after, as far as its days are known.
        """
        days = since or {}
        counted = self.counted.items()
        counts = {lesson: list(of_it) for lesson, of_it in counted if lesson not in days}
        place = {outcome: number for number, outcome in enumerate(OUTCOMES)}
        for entry in self.open.values():
            for lesson, verdict in zip(entry.lessons, entry.verdicts, strict=True):
                if entry.time[:10] <= days.get(lesson, ""):
                    continue
                of_lesson = counts.setdefault(lesson, [0] * len(OUTCOMES))
                of_lesson[place[verdict or UNKNOWN]] += 1
        return {lesson: Tally(sum(of_it), *of_it) for lesson, of_it in counts.items()}

    def _count(self, lesson: str, counts: Iterable[int]) -> None:
        before = self.counted.get(lesson, [0] * len(OUTCOMES))
        self.counted[lesson] = [old + new for old, new in zip(before, counts, strict=True)]


def load(folder: Path | None) -> Ledger:
    """Return the ledger of a folder; an empty one if it is missing or damaged."""
    try:
        data = files.read_if_any(folder / FILE) if folder else None
        values = json.loads(data) if data else {}
        if values.get("version") != VERSION:
            return Ledger()
        return Ledger(
            read=dict(values["read"]),
            sessions=dict(values["sessions"]),
            open={key: Entry(**entry) for key, entry in values["open"].items()},
            counted={lesson: list(map(int, each)) for lesson, each in values["counted"].items()},
            until=str(values["until"]),
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return Ledger()


def save(folder: Path, ledger: Ledger) -> None:
    """Write the ledger of a folder. Raises WriteError."""
    entries = {key: _short(entry) for key, entry in ledger.open.items()}
    values = {
        "version": VERSION,
        "until": ledger.until,
        "read": ledger.read,
        "counted": ledger.counted,
        "sessions": ledger.sessions,
        "open": entries,
    }
    with files.writing(folder / FILE):
        files.replace_file(folder / FILE, json.dumps(values, ensure_ascii=False).encode())


def _short(entry: Entry) -> dict[str, Any]:
    return {name: value for name, value in asdict(entry).items() if value}


def _key(entry: Entry) -> str:
    about = [entry.time, entry.event, entry.session, entry.prompt, entry.lessons, entry.renamed]
    return blake2b(json.dumps(about).encode(), digest_size=8).hexdigest()
