"""The verdicts about injections, kept for longer than the injections' own record: a private file.

    ~/.lessons/outcomes/<project>/<vault>/ledger.json

An entry for each injection of the last weeks, since its session may go on and is then judged again;
older ones are only counted, per lesson. No prompt, no text and no name of a session's file is in it.
Unlike a cache it stays: neither a new index nor a forgotten session changes what was counted.

If nothing is new, only the ledger is read: 5,000 injections in a tenth of a second. A session is judged
when the journal has it and again after each change of its file.
"""

from __future__ import annotations

import functools
import json
import os
import re
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vault_index import files
from vault_index.errors import VaultError, WriteError
from vault_index.journal import archive, expiry, projects
from vault_index.journal.journal import Journal
from vault_index.recall.outcome import judge, story, words
from vault_index.recall.outcome.judge import OUTCOMES, UNKNOWN
from vault_index.recall.outcome.story import FAILED, TYPED, WROTE, Step
from vault_index.recall.outcome.words import Marks
from vault_index.store import filters, injections

if TYPE_CHECKING:
    from vault_index.store.sync import Progress
    from vault_index.vault import Vault

FOLDER, FILE = "outcomes", "ledger.json"
VERSION = 2  # of the rules, too: sessions that an older one judged are judged again
OPEN_DAYS = 45  # that an injection is kept by itself: agents keep transcripts for 30
MAX_OPEN = 20_000  # injections, some 200 bytes each; the oldest are counted and go
START = "SessionStart"
# Events that push lessons; a lookup of an agent is no injection.
EVENTS = (injections.PROMPT, injections.FAILURE, injections.EDIT, START)
PATIENCE_SECONDS = 2.0  # of somebody who asks for the counts; other sessions wait for the next time
TURNS_FROM_START = 30  # in which a lesson from the start of a session may be of use
SAMPLE = 300  # lessons that say which signs are usual
SESSIONS = 12  # the latest of a project, that say which signs are common in it
NEAR_SECONDS = 90.0  # between a prompt's injection and its record, where the texts differ

_NUMBER = re.compile(r"-\d+$")  # of a file whose session's id begins as another's


@dataclass(frozen=True, slots=True)
class Tally:
    """How often a lesson was injected, and what agents did with it; the next four add up to the first.

    `again` is how often the failure that it came for came again.
    """

    injected: int = 0
    taken: int = 0
    ignored: int = 0
    contradicted: int = 0
    unknown: int = 0
    again: int = 0


@dataclass(slots=True)
class Entry:
    """An injection, or a change of names. `verdicts` are those of `lessons`, "" before the first."""

    time: str  # ISO 8601, UTC
    event: str = ""
    session: str = ""
    prompt: str = ""  # its hash, or that of a failure's signature
    lessons: list[str] = field(default_factory=list)
    verdicts: list[str] = field(default_factory=list)
    renamed: dict[str, str] = field(default_factory=dict)
    again: bool = False  # whether the failure came again: the hook saw it, or the transcript has it


@dataclass(slots=True)
class Ledger:
    """The verdicts about all injections of a vault."""

    read: dict[str, list[list[int]]] = field(default_factory=dict)  # index folder -> stamps as read
    sessions: dict[str, list[int]] = field(default_factory=dict)  # -> stamp of its file as judged
    open: dict[str, Entry] = field(default_factory=dict)  # by key
    counted: dict[str, list[int]] = field(default_factory=dict)  # lesson -> OUTCOMES, again
    until: str = ""  # the time up to which injections are only counted
    waiting: int = 0  # sessions that are not judged yet; not in the file

    def add(self, record: Mapping[str, Any]) -> None:
        """Add a record of the injections' file, once; change the names in those before it."""
        lessons = [str(lesson) for lesson in record.get("lessons") or ()]
        at, event, session, prompt = (
            str(record.get(name) or "") for name in ("time", "event", "session", "prompt")
        )
        entry = Entry(at, event, session, prompt, lessons, [""] * len(lessons))
        renamed = record.get("renamed")
        if isinstance(renamed, dict):
            entry.renamed = {str(old): str(new) for old, new in renamed.items()}
        key = _key(entry)
        if entry.time > self.until and key not in self.open:
            self.rename(entry.renamed)
            self.open[key] = entry

    def rename(self, renamed: Mapping[str, str]) -> None:
        """Count under the new ids what was counted under the old ones, of sections too."""
        if not renamed:
            return
        now = functools.partial(injections.renamed, names=renamed)
        for entry in self.open.values():
            entry.lessons = [*map(now, entry.lessons)]
        counted, self.counted = self.counted, {}
        for lesson, counts in counted.items():
            _count(self.counted, now(lesson), counts)

    def judged(self, other: Ledger, sessions: Iterable[str]) -> None:
        """Take over the verdicts about some sessions from a copy of this ledger."""
        for session in sessions:
            self.sessions[session] = other.sessions[session]
        for key, entry in self.open.items():
            theirs = other.open.get(key)
            if theirs and entry.session in other.sessions and all(theirs.verdicts):
                entry.verdicts = list(theirs.verdicts)
                entry.again |= theirs.again

    def fold(self, before: str) -> None:
        """Reduce the injections from before a time to counts, and the oldest if there are too many."""
        times = sorted(entry.time for entry in self.open.values())
        if len(times) > MAX_OPEN:
            before = max(before, times[-MAX_OPEN])
        for key in [key for key, entry in self.open.items() if entry.time < before]:
            entry = self.open.pop(key)
            self.until = max(self.until, entry.time)
            for lesson, counts in _counts(entry):
                _count(self.counted, lesson, counts)
        there = {entry.session for entry in self.open.values()}
        self.sessions = {name: stamp for name, stamp in self.sessions.items() if name in there}

    def tallies(self, since: Mapping[str, str] | None = None) -> dict[str, Tally]:
        """Return the tally of each lesson that was ever injected, by id.

        A lesson in `since` counts only from the day after, as far as its days are known.
        """
        days = since or {}
        counted = {id: each for id, each in self.counted.items() if id not in days}
        for entry in self.open.values():
            for lesson, counts in _counts(entry):
                if entry.time[:10] > days.get(lesson, ""):
                    _count(counted, lesson, counts)
        return {lesson: Tally(sum(counts[:-1]), *counts) for lesson, counts in counted.items()}

    @property
    def again(self) -> Set[injections.Key]:
        """The injections at failures that came again, as far as they are not only counted."""
        return {
            (entry.time, entry.session, entry.prompt) for entry in self.open.values() if entry.again
        }


def _count(counted: dict[str, list[int]], lesson: str, counts: Sequence[int]) -> None:
    before = counted.get(lesson, [0] * len(counts))
    counted[lesson] = [old + new for old, new in zip(before, counts, strict=True)]


def _counts(entry: Entry) -> Iterator[tuple[str, list[int]]]:
    """Yield the lessons of an injection, each with what it adds to `Ledger.counted`."""
    for lesson, verdict in zip(entry.lessons, entry.verdicts, strict=True):
        of_outcomes = [int((verdict or UNKNOWN) == each) for each in OUTCOMES]
        yield lesson, [*of_outcomes, int(entry.again)]


def load(folder: Path | None) -> Ledger:
    """Return the ledger of a folder; an empty one if it is missing or damaged."""
    try:
        values = files.read_json(folder / FILE) if folder else {}
        version = int(values.get("version") or 0)
        if not 0 < version <= VERSION:
            return Ledger()
        return Ledger(
            read=dict(values["read"]),
            sessions=dict(values["sessions"]) if version == VERSION else {},
            open={key: Entry(**entry) for key, entry in values["open"].items()},
            counted={  # an older one has no `again`
                lesson: [*map(int, each), 0][: len(OUTCOMES) + 1]
                for lesson, each in values["counted"].items()
            },
            until=str(values["until"]),
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return Ledger()


def save(folder: Path, ledger: Ledger) -> None:
    """Write the ledger of a folder. Raises WriteError."""

    def short(entry: Entry) -> dict[str, Any]:
        return {name: value for name, value in asdict(entry).items() if value}

    values = {name: getattr(ledger, name) for name in Ledger.__slots__ if name != "waiting"}
    text = json.dumps({"version": VERSION, **values}, ensure_ascii=False, default=short)
    files.replace_file(folder / FILE, text.encode())


def _key(entry: Entry) -> str:
    about = [entry.time, entry.event, entry.session, entry.prompt, entry.lessons, entry.renamed]
    return blake2b(json.dumps(about).encode(), digest_size=8).hexdigest()


# Bring the ledger up to date: take in new injections, judge the sessions that went on since.


def tally(vault: Vault) -> Mapping[str, Tally]:
    """Return what agents did with each lesson that was ever injected, by its id."""
    return update(vault).tallies()


def update(
    vault: Vault, seconds: float = PATIENCE_SECONDS, progress: Progress | None = None
) -> Ledger:
    """Bring the ledger up to date in at most so many seconds of judging, and return it.

    Never raises: without an index or a place to write it is what was known before.
    """
    book = load(projects.private_folder(vault, FOLDER))
    sessions = _Sessions(Journal(vault.config).folder)
    if not (_take_in(vault, book) or (book.open and sessions.behind(book))):
        return book
    behind = sessions.behind(book)
    judged: list[str] = []
    until = time.monotonic() + seconds
    marks = _Marks(vault, book, sessions)
    latest_first = sorted(behind.items(), key=lambda item: item[1][-1].time, reverse=True)
    for session, entries in latest_first:
        if time.monotonic() > until:
            break
        try:
            _judge_session(sessions.steps(session), entries, marks)
        except VaultError:  # no index yet: it is judged when there is one
            break
        book.sessions[session] = sessions.stamp(session)
        judged.append(session)
        if progress:
            progress(len(judged), len(behind))
    with suppress(WriteError), projects.hold_private_folder(vault, FOLDER) as folder:
        latest = load(folder)  # others may have judged meanwhile
        _take_in(vault, latest)
        latest.judged(book, judged)
        oldest = datetime.now(UTC) - timedelta(days=OPEN_DAYS)
        is_trusted = expiry.is_trusted(vault.config.home)
        latest.fold(oldest.strftime("%Y-%m-%dT%H:%M:%SZ") if is_trusted else "")
        save(folder, latest)
        book = latest
    book.waiting = len(behind) - len(judged)
    return book


def _take_in(vault: Vault, book: Ledger) -> bool:
    """Take in the injections that were recorded since. Whether there are any."""
    try:
        folder = vault.index_dir
    except VaultError:  # somebody else made it
        return False
    there = [folder / name for name in (injections.OLD_FILE, injections.FILE)]
    stamps = [list(files.stamp_of(file.lstat())) for file in there if os.path.lexists(file)]
    if not stamps or book.read.get(str(folder)) == stamps:
        return False
    latest: dict[tuple[str, str], str] = {}  # of failures, told or not: session, signature -> time
    for record in injections.records(folder):
        is_push = record.get("event") in EVENTS and record.get("session") and record["lessons"]
        if is_push or record.get("event") == injections.RENAME:
            book.add(record)
        if record.get("event") == injections.FAILURE:
            same = str(record.get("session") or ""), str(record.get("prompt") or "")
            latest[same] = str(record.get("time") or "")
    for entry in book.open.values():
        if entry.event == injections.FAILURE:
            entry.again |= latest.get((entry.session, entry.prompt), "") > entry.time
    book.read[str(folder)] = stamps
    return True


class _Sessions:
    """The session files of the journal, as they are now."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._latest = functools.cache(self._latest_in)

    @cached_property
    def _stamps(self) -> Mapping[str, Sequence[tuple[str, files.Stamp]]]:
        """The path and stamp of each file, by the session's part of its name."""
        by_name: dict[str, list[tuple[str, files.Stamp]]] = {}
        for path, stamp in archive.stamps(self._folder):
            by_name.setdefault(_bare(archive.name_in(Path(path))), []).append((path, stamp))
        return by_name

    @cached_property
    def _paths(self) -> Sequence[str]:
        return [path for same in self._stamps.values() for path, _ in same]

    def _files_of(self, session: str) -> Sequence[tuple[str, files.Stamp]]:
        return self._stamps.get(_bare(archive.file_name(session)), ())

    def stamp(self, session: str) -> list[int]:
        """Return the stamps of a session's files, one after the other; [] without a file."""
        return [number for _, stamp in self._files_of(session) for number in stamp]

    def behind(self, book: Ledger) -> dict[str, list[Entry]]:
        """Return the sessions that changed since they were judged, with their injections."""
        entries: dict[str, list[Entry]] = {}
        for entry in book.open.values():
            if entry.lessons:
                entries.setdefault(entry.session, []).append(entry)
        return {
            session: of_session
            for session, of_session in entries.items()
            if not all(all(entry.verdicts) for entry in of_session)
            # of a session that was forgotten since, the verdicts stay
            or ((stamp := self.stamp(session)) and book.sessions.get(session) != stamp)
        }

    def steps(self, session: str) -> list[Step]:
        """Return the steps of a session; none where it cannot be read."""
        paths = (path for path, _ in self._files_of(session))
        return next(filter(None, (self._steps_in(path, session) for path in paths)), [])

    def _steps_in(self, path: str, session: str = "") -> list[Step]:
        """Return the steps of a file; none where it cannot be read, or is of another session."""
        with suppress(VaultError):  # `lessons journal status` names it
            read = archive.read(self._folder / path)
            return story.steps_of(read) if session in ("", read.id) else []
        return []

    def others(self, session: str, given: Set[str]) -> list[Set[str]]:
        """Return the words of the latest sessions of the same project that were not `given` a lesson."""
        names = {_bare(archive.file_name(each)) for each in (session, *given)}
        projects = {path.partition("/")[0] for path, _ in self._files_of(session)}
        latest = (pair for project in projects for pair in self._latest(project).items())
        return [had for name, had in latest if name not in names]

    def _latest_in(self, project: str) -> Mapping[str, Set[str]]:
        """Return the words of the latest sessions of a project, by the session's part of the name."""
        paths = [path for path in self._paths if path.startswith(f"{project}/")]
        words: dict[str, Set[str]] = {}
        for path in sorted(paths)[-SESSIONS:]:
            with suppress(VaultError):
                steps = story.of_records(archive.read(self._folder / path).records)
                words[_bare(archive.name_in(Path(path)))] = judge.words_before(steps)
        return words


def _bare(name: str) -> str:
    return _NUMBER.sub("", name)


def _judge_session(steps: Sequence[Step], entries: Iterable[Entry], marks: _Marks) -> None:
    """Judge the injections of a session. Raises IndexStateError without an index."""
    for entry in entries:
        place = _place(entry, steps)
        if place is None:
            entry.verdicts = [each or UNKNOWN for each in entry.verdicts]
            continue
        had = judge.words_before(steps[:place])
        turns = TURNS_FROM_START if entry.event == START else judge.TURNS
        after = judge.turns_after(steps, place, turns)
        failure = entry.prompt if entry.event == injections.FAILURE else ""
        later = (step for step in steps[place:] if step.kind == FAILED)
        entry.again |= any(step.key == failure for step in later)
        entry.verdicts = [
            UNKNOWN if own is None else judge.judge(own, had, after, failure).outcome
            for own in (marks.of(lesson, entry.session) for lesson in entry.lessons)
        ]


def _place(entry: Entry, steps: Sequence[Step]) -> int | None:
    """Return the place of the first step after an injection; None where nobody knows."""
    if not steps:
        return None
    moment = _seconds(entry.time)
    if entry.event == START:
        later = (at for at, step in enumerate(steps) if _seconds(step.at) >= moment - 1)
        return next(later, None)
    kind = {injections.FAILURE: FAILED, injections.EDIT: WROTE}.get(entry.event, TYPED)
    of_kind = [at for at, step in enumerate(steps) if step.kind == kind]
    same = [at for at in of_kind if steps[at].key == entry.prompt]
    near = same or [at for at in of_kind if abs(_seconds(steps[at].at) - moment) <= NEAR_SECONDS]
    if not near:
        return None
    return min(near, key=lambda at: abs(_seconds(steps[at].at) - moment)) + 1


def _seconds(at: str) -> float:
    try:
        return datetime.fromisoformat(at).timestamp()
    except ValueError:
        return 0.0


class _Marks:
    """The marks of lessons, without what is usual. Raises IndexStateError without an index."""

    def __init__(self, vault: Vault, book: Ledger, sessions: _Sessions) -> None:
        self._vault, self._sessions = vault, sessions
        self._given: dict[str, set[str]] = defaultdict(set)  # lesson -> sessions
        for entry in book.open.values():
            for lesson in entry.lessons:
                self._given[lesson].add(entry.session)
        self._own = functools.cache(self._of_text)

    def of(self, lesson: str, session: str) -> Marks | None:
        """Return the marks of a lesson that a session was given; None if it is gone."""
        own = self._own(lesson)
        if own is None:
            return None
        others = self._sessions.others(session, self._given[lesson])
        return own.without(judge.common(own.signs, others))

    @cached_property
    def _texts(self) -> dict[str, str]:
        rows = self._vault.open_index().store.rows(("lesson_id", "text"), filters.WHOLE)
        return {row["lesson_id"]: row["text"] for row in rows}

    @cached_property
    def _usual(self) -> Set[str]:
        """The signs that many lessons have."""
        texts = [text for _, text in sorted(self._texts.items())]
        return words.usual_in(texts[:: max(1, len(texts) // SAMPLE)])

    def _of_text(self, lesson: str) -> Marks | None:
        text = self._texts.get(lesson)
        return None if text is None else words.marks_of(text).without(self._usual)
