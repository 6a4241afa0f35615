"""Bring the ledger up to date: take in new injections, judge the sessions that went on since.

Where nothing is new, the ledger is read and nothing else: 5,000 injections in a tenth of a second. A
session is judged when the journal has it and again after each change of its file.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from vault_index import files
from vault_index.errors import VaultError, WriteError
from vault_index.journal import archive, expiry, projects
from vault_index.journal.journal import Journal
from vault_index.recall.outcome import judge, ledger, story, words
from vault_index.recall.outcome.judge import UNKNOWN
from vault_index.recall.outcome.ledger import Entry, Ledger, Tally
from vault_index.recall.outcome.story import TYPED, Step
from vault_index.recall.outcome.words import Marks
from vault_index.store import filters, injections

if TYPE_CHECKING:
    from vault_index.vault import Vault

START = "SessionStart"
EVENTS = (injections.PROMPT, START)  # that push lessons; a lookup of an agent is no injection
PATIENCE_SECONDS = 2.0  # of somebody who asks for the counts; other sessions wait for the next time
TURNS, TURNS_FROM_START = 5, 30  # prompts after a lesson came, in which it may be of use
SAMPLE = 300  # lessons that say how rare a word is
NEAR_SECONDS = 90.0  # between a prompt's injection and its record, where the texts differ

_NUMBER = re.compile(r"-\d+$")  # of a file whose session's id begins as another's

_Stamps = Mapping[str, Sequence[tuple[str, files.Stamp]]]  # by the session's part of a file's name


@dataclass(frozen=True, slots=True)
class Outcomes:
    """What agents did with the lessons, and how many sessions are not judged yet."""

    ledger: Ledger = field(default_factory=Ledger)
    waiting: int = 0

    @property
    def tallies(self) -> Mapping[str, Tally]:
        """The tally of each lesson that was ever injected, by its id."""
        return self.ledger.tallies()

    def since(self, days: Mapping[str, str]) -> Mapping[str, Tally]:
        """Return the tallies, of lessons with a day only by what was injected after it."""
        return self.ledger.tallies(days)


def tally(vault: Vault) -> Mapping[str, Tally]:
    """Return what agents did with each lesson that was ever injected, by its id."""
    return of(vault).tallies


def of(
    vault: Vault,
    seconds: float = PATIENCE_SECONDS,
    progress: Callable[[int, int], None] | None = None,
) -> Outcomes:
    """Return the outcomes as they are now, after at most so many seconds of judging.

    Never raises: without an index or a place to write it is what was known before.
    """
    book = ledger.load(projects.private_folder(vault, ledger.FOLDER))
    stamps = _stamps_of(Journal(vault.config).folder) if book.open else {}
    if not (_has_new_records(vault, book) or _behind(book, stamps)):
        return Outcomes(book)
    _take_in(vault, book)
    judged, waiting = _judge(vault, book, seconds, progress)
    with suppress(WriteError), projects.hold_private_folder(vault, ledger.FOLDER) as folder:
        latest = ledger.load(folder)  # others may have judged meanwhile
        _take_in(vault, latest)
        latest.judged(book, judged)
        oldest = datetime.now(UTC) - timedelta(days=ledger.OPEN_DAYS)
        is_trusted = expiry.is_trusted(vault.config.home)
        latest.fold(oldest.strftime("%Y-%m-%dT%H:%M:%SZ") if is_trusted else "")
        ledger.save(folder, latest)
        book = latest
    return Outcomes(book, waiting)


def _judge(
    vault: Vault, book: Ledger, seconds: float, progress: Callable[[int, int], None] | None
) -> tuple[list[str], int]:
    """Judge the sessions that went on, the latest first; return which, and how many have to wait."""
    folder = Journal(vault.config).folder
    stamps = _stamps_of(folder)
    behind = _behind(book, stamps)
    judged: list[str] = []
    until = time.monotonic() + seconds
    marks = _Marks(vault)
    for session, entries in sorted(behind.items(), key=lambda item: item[1][-1].time, reverse=True):
        if time.monotonic() > until:
            break
        try:
            _judge_session(folder, session, entries, stamps, marks)
        except VaultError:  # no index yet: it is judged when there is one
            break
        book.sessions[session] = _stamp(session, stamps)
        judged.append(session)
        if progress:
            progress(len(judged), len(behind))
    return judged, len(behind) - len(judged)


def _has_new_records(vault: Vault, book: Ledger) -> bool:
    name, stamps = _injections_read(vault)
    return bool(stamps) and book.read.get(name) != stamps


def _take_in(vault: Vault, book: Ledger) -> None:
    name, stamps = _injections_read(vault)
    if not stamps or book.read.get(name) == stamps:
        return
    for record in injections.records(Path(name)):
        is_push = record.get("event") in EVENTS and record.get("session") and record["lessons"]
        if is_push or record.get("event") == injections.RENAME:
            book.add(record)
    book.read[name] = stamps


def _injections_read(vault: Vault) -> tuple[str, list[list[int]]]:
    """Return the folder of the injections' files, and the stamps of those that are there."""
    try:
        folder = vault.index_dir
    except VaultError:  # somebody else made it
        return "", []
    stamps = []
    for name in (injections.OLD_FILE, injections.FILE):
        try:
            stamps.append(list(files.stamp_of((folder / name).lstat())))
        except OSError:
            continue
    return str(folder), stamps


def _stamps_of(folder: Path) -> _Stamps:
    by_name: dict[str, list[tuple[str, files.Stamp]]] = {}
    for place, stamp in archive.stamps(folder):
        name = place.rpartition("/")[2].removesuffix(".md").partition("-")[2]
        by_name.setdefault(_NUMBER.sub("", name), []).append((place, stamp))
    return by_name


def _behind(book: Ledger, stamps: _Stamps) -> dict[str, list[Entry]]:
    """Return the sessions that changed since they were judged, with their injections."""
    entries: dict[str, list[Entry]] = {}
    for entry in book.open.values():
        if entry.lessons:
            entries.setdefault(entry.session, []).append(entry)
    behind: dict[str, list[Entry]] = {}
    for session, of_session in entries.items():
        stamp = _stamp(session, stamps)
        is_judged = all(all(entry.verdicts) for entry in of_session)
        # of a session that was forgotten since, the verdicts stay
        if not is_judged or (stamp and book.sessions.get(session) != stamp):
            behind[session] = of_session
    return behind


def _files_of(session: str, stamps: _Stamps) -> Sequence[tuple[str, files.Stamp]]:
    return stamps.get(_NUMBER.sub("", archive.file_name(session)), ())


def _stamp(session: str, stamps: _Stamps) -> list[int]:
    """Return the stamps of a session's files, one after the other; [] where there is none."""
    return [number for _, stamp in _files_of(session, stamps) for number in stamp]


def _judge_session(
    folder: Path, session: str, entries: Iterable[Entry], stamps: _Stamps, marks: _Marks
) -> None:
    """Judge the injections of a session. Raises IndexStateError without an index."""
    steps: list[Step] = []
    for place, _ in _files_of(session, stamps):
        try:
            read = story.read_session(files.read_file(folder / place), folder / place)
        except VaultError:  # `lessons journal status` names it
            continue
        if read.id == session and not steps:
            steps = story.of_session(read)
    for entry in entries:
        place_of_it = _place(entry, steps)
        if place_of_it is None:
            entry.verdicts = [UNKNOWN] * len(entry.lessons)
            continue
        had = judge.words_before(steps[:place_of_it])
        after = steps[place_of_it : _end(entry, steps, place_of_it)]
        entry.verdicts = [
            UNKNOWN if mark is None else judge.judge(mark, had, after).outcome
            for mark in map(marks.of, entry.lessons)
        ]


def _place(entry: Entry, steps: Sequence[Step]) -> int | None:
    """Return the place of the first step after an injection; None where nobody knows."""
    if not steps:
        return None
    moment = _seconds(entry.time)
    if entry.event == START:
        later = (at for at, step in enumerate(steps) if _seconds(step.at) >= moment - 1)
        return next(later, None)
    typed = [at for at, step in enumerate(steps) if step.kind == TYPED]
    same = [at for at in typed if steps[at].key == entry.prompt]
    near = same or [at for at in typed if abs(_seconds(steps[at].at) - moment) <= NEAR_SECONDS]
    if not near:
        return None
    return min(near, key=lambda at: abs(_seconds(steps[at].at) - moment)) + 1


def _end(entry: Entry, steps: Sequence[Step], start: int) -> int:
    """Return the place after the last step that counts."""
    turns = TURNS_FROM_START if entry.event == START else TURNS
    typed = [at for at in range(start, len(steps)) if steps[at].kind == TYPED]
    return typed[turns] if len(typed) > turns else len(steps)


def _seconds(at: str) -> float:
    try:
        return datetime.fromisoformat(at).timestamp()
    except ValueError:
        return 0.0


class _Marks:
    """The marks of lessons, each made when it is asked for."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self._marks: dict[str, Marks | None] = {}
        self._documents: Counter[str] | None = None
        self._count = 0

    def of(self, lesson: str) -> Marks | None:
        """Return the marks of a lesson; None if it is gone. Raises IndexStateError."""
        if lesson not in self._marks:
            self._marks[lesson] = self._made(lesson)
        return self._marks[lesson]

    def _made(self, lesson: str) -> Marks | None:
        store = self._vault.open_index().store
        if self._documents is None:
            rows = store.rows(("lesson_id", "title", "text"), filters.WHOLE)
            rows.sort(key=lambda row: str(row["lesson_id"]))
            some = rows[:: max(1, len(rows) // SAMPLE)]
            self._documents = Counter(
                word for row in some for word in words.words_run(f"{row['title']}\n{row['text']}")
            )
            self._count = len(some)
            self._texts = {row["lesson_id"]: (row["title"], row["text"]) for row in rows}
        if lesson not in self._texts:
            return None
        marks = words.of_lesson(*self._texts[lesson])
        return words.by_rarity(marks, self._documents, self._count)
