"""Lessons whose subject is gone: reasons to look at them again.

A lesson holds as of the day on which it was last confirmed, else last changed. Its citations are
compared with the repository of that day: a file, a name of the code or a version counts only if it was
there then. So a vault that serves other repositories, and a lesson about what was removed long before,
give no reason. Nothing is changed here.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from vault_index import git
from vault_index.errors import VaultError
from vault_index.files import read_if_any
from vault_index.lesson import edits
from vault_index.recall import anchors, citations
from vault_index.recall.citations import Cited
from vault_index.store import filters

if TYPE_CHECKING:
    from vault_index.git import Past
    from vault_index.store.sync import Progress
    from vault_index.vault import Vault

CONFIRMED = "confirmed"  # the key of a lesson's frontmatter
CHANGED_SHARE = 0.5  # of a cited file's lines that are gone
MIN_LINES = 20  # of a file whose lines are compared
MAX_DAYS = 60  # on which lessons were confirmed; of more only the last of each month is compared
MAX_MANIFESTS = 60  # that are read of a repository of many packages
MAX_FILES_CITED = 4  # of a lesson that is about its files; one that names more gives examples
_WORD = re.compile(rb"[A-Za-z_]\w{3,}")
_NO_CODE = (".md", ".rst", ".txt", ".adoc", ".lock", ".sum", ".json", ".svg", ".csv", ".snap")
_OFTEN_CHANGED = re.compile(
    r"(?:^|/)(?:CHANGELOG|HISTORY|NEWS|README|LICENSE)[^/]*$|\.lock$|lock\.json$"
)
_DATE = re.compile(r"\d{4}-\d\d-\d\d")


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a lesson should be looked at: its `kind` is that of `reasons`."""

    lesson: str
    title: str
    path: str  # of its file, from the vault's root
    kind: str
    why: str  # one line
    do: str  # a command


@dataclass(frozen=True, slots=True)
class _Lesson:
    id: str
    title: str
    path: str
    cited: Cited = field(default_factory=Cited)
    confirmed: str = ""  # the day, "" if never
    day: str = ""  # as of which it holds, "" if no commit has it

    @property
    def since(self) -> str:
        return f" since {self.day}, when it was {'confirmed' if self.confirmed else 'written'}"

    def reason(self, kind: str, why: str, verb: str = "edit") -> Reason:
        return Reason(self.id, self.title, self.path, kind, why, f"lessons {verb} {self.id}")


def _files_that_say_more(vault: Vault, paths: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """Yield the files of lessons that have anchors, or the day on which they were confirmed."""
    for path in paths:
        with suppress(VaultError):  # `check` reports it
            data = read_if_any(vault.root / path) or b""
            if b"\nconfirmed:" in data or b"\nanchors:" in data:
                yield path, data


def _day_confirmed(data: bytes, path: str) -> str:
    """Return the day on which a file of lessons was confirmed; "" if it says none."""
    value = None
    with suppress(VaultError):  # `check` reports it
        value = edits.keys_of(data, path).get(CONFIRMED)
    if isinstance(value, datetime):
        value = value.astimezone(UTC).date() if value.tzinfo else value.date()
    match = _DATE.match(value.isoformat() if isinstance(value, date) else str(value or ""))
    return match[0] if match else ""


def reasons(vault: Vault, progress: Progress | None = None) -> list[Reason]:
    """Return the reasons, by lesson. The kinds are anchor, file, name, version, changed.

    Raises IndexStateError without an index.
    """
    rows = vault.open_index().store.rows(("lesson_id", "title", "text", "path"), filters.WHOLE)
    rows.sort(key=lambda row: str(row["lesson_id"]))
    contents = dict(_files_that_say_more(vault, sorted({str(row["path"]) for row in rows})))
    days = {path: _day_confirmed(data, path) for path, data in contents.items()}
    confirmed = {path: day for path, day in days.items() if day}
    listed = [*_of_anchors(vault, rows, contents)]
    past = git.look_back(vault.lessons_dir)
    if past:
        listed += _of_repository(vault, past, rows, confirmed, progress)
    return sorted(listed, key=lambda reason: (reason.lesson, reason.kind, reason.why))


def _of_anchors(
    vault: Vault, rows: Sequence[Mapping[str, Any]], contents: Mapping[str, bytes]
) -> Iterator[Reason]:
    top = anchors.top_of(vault)
    for row in rows:
        lesson = _Lesson(row["lesson_id"], row["title"], row["path"])
        for each in anchors.of_data(contents.get(row["path"], b""), row["path"]):
            state = anchors.state(top, each)
            if state == anchors.GONE:
                yield lesson.reason("anchor", f"{each.shown} is gone: hooks leave the lesson out")
            elif state == anchors.CHANGED:
                yield lesson.reason("anchor", f"{each.shown} changed since it was confirmed")


def _of_repository(
    vault: Vault,
    past: Past,
    rows: Sequence[Mapping[str, Any]],
    confirmed: Mapping[str, str],
    progress: Progress | None,
) -> list[Reason]:
    changed = past.last_changes(vault.lessons_dir)
    lessons = []
    for row in rows:
        day = changed.get(str(row["path"]).partition("/")[2], "")
        cited = citations.cited_in(str(row["text"])) if day else Cited()
        if cited:
            own = confirmed.get(row["path"], "")
            about = (row["lesson_id"], row["title"], row["path"])
            lessons.append(_Lesson(*about, cited, own, max(day, own)))
    by_day: dict[str, list[_Lesson]] = defaultdict(list)
    many = len({lesson.day for lesson in lessons}) > MAX_DAYS
    for lesson in lessons:
        by_day[f"{lesson.day[:7]}-31" if many else lesson.day].append(lesson)
    listed: list[Reason] = []
    days, now = past.days(), past.names("HEAD")
    own = os.path.relpath(os.path.realpath(vault.lessons_dir), past.top)
    for done, (day, of_day) in enumerate(sorted(by_day.items()), start=1):
        earlier = [each for each in days if each <= day]
        commit = days[max(earlier)] if earlier else ""  # there was none yet
        if commit and commit != days[max(days)]:
            listed += _Then(past, commit, own, now).reasons(of_day)
        if progress:
            progress(done, len(by_day))
    return listed


class _Then:
    """The repository as it was at a commit, and what became of it."""

    def __init__(self, past: Past, commit: str, own: str, now: frozenset[str]) -> None:
        self._past, self._commit, self._own, self._now = past, commit, own, now
        self._changes = {
            path: change
            for path, change in past.changes(commit).items()
            if not path.startswith(f"{own}/")
        }
        self._ends: dict[str, list[str]] = defaultdict(list)
        self._ends_now = {path.rpartition("/")[2] for path in now}

    def reasons(self, lessons: Sequence[_Lesson]) -> Iterator[Reason]:
        """Yield what is wrong with lessons that held at this commit."""
        if not self._changes:
            return
        for path in self._past.names(self._commit):
            self._ends[path.rpartition("/")[2]].append(path)
        gone = self._names_gone(lessons)
        for lesson in lessons:
            yield from self._of_files(lesson)
            yield from self._of_versions(lesson)
            if names := sorted(lesson.cited.names & gone):
                is_are = "is" if len(names) == 1 else "are"
                why = f"{', '.join(names[:3])} {is_are} gone from the code{lesson.since}"
                yield lesson.reason("name", why)

    def _of_files(self, lesson: _Lesson) -> Iterator[Reason]:
        cited = {path: self._meant(path) for path in sorted(lesson.cited.paths)}
        there = {path: meant for path, meant in cited.items() if meant}
        for path, meant in there.items():
            change = self._changes.get(meant)
            if change is None:
                continue
            if change.is_deleted and meant not in self._now and not self._is_there(path):
                moved = self._renames.get(meant, "")
                to = f"; it is {moved} now" if moved else ""
                yield lesson.reason("file", f"{path} is gone{lesson.since}{to}")
            elif not change.is_deleted and len(there) <= MAX_FILES_CITED:
                gone, lines = len(change.gone), 0
                if gone >= MIN_LINES * CHANGED_SHARE and not _OFTEN_CHANGED.search(meant):
                    lines = self._past.lines(self._commit, meant)
                share = gone / lines if lines >= MIN_LINES else 0.0
                if share > CHANGED_SHARE:
                    why = f"{share:.0%} of the lines of {path} changed{lesson.since}"
                    yield lesson.reason("changed", why, "confirm")

    def _meant(self, cited: str) -> str:
        """Return the file that a path meant at the commit; "" for none or several."""
        cited = cited.removeprefix("./")
        same = [
            path
            for path in self._ends.get(cited.rpartition("/")[2], ())
            if f"/{path}".endswith(f"/{cited}") and not path.startswith(f"{self._own}/")
        ]
        return same[0] if len(same) == 1 else (cited if cited in same else "")

    def _is_there(self, cited: str) -> bool:
        """Whether a file ends as a path does now, also one that is not committed."""
        if (self._past.top / cited).exists():
            return True
        return cited.rpartition("/")[2] in self._ends_now and any(
            f"/{path}".endswith(f"/{cited}") for path in self._now
        )

    @cached_property
    def _renames(self) -> Mapping[str, str]:
        return self._past.renames(self._commit)

    def _names_gone(self, lessons: Sequence[_Lesson]) -> set[str]:
        cited = {name.encode() for lesson in lessons for name in lesson.cited.names}
        if not cited:
            return set()
        removed: set[bytes] = set()
        for path, change in self._changes.items():
            if not path.endswith(_NO_CODE):
                removed.update(*(cited.intersection(_WORD.findall(line)) for line in change.gone))
        gone = {name.decode() for name in removed}
        return gone - self._past.there_now(gone, self._own)

    def _of_versions(self, lesson: _Lesson) -> Iterator[Reason]:
        for name, version in sorted(lesson.cited.versions):
            had, agrees = self._had.get(name, ()), partial(citations.agrees, version)
            if any(map(agrees, had)) and (has := self._has.get(name)) and not any(map(agrees, has)):
                now = " and ".join(sorted(has))
                yield lesson.reason("version", f"{name} {version} is {now} now")

    @cached_property
    def _had(self) -> Mapping[str, set[str]]:
        """The versions of each dependency that manifests had which changed since."""
        changed = [path for path in self._changes if citations.is_manifest(path)]
        return self._pinned(changed, self._commit)

    @cached_property
    def _has(self) -> Mapping[str, set[str]]:
        """The versions of each dependency that manifests have now."""
        there = sorted(path for path in self._now if citations.is_manifest(path))
        return self._pinned(there[:MAX_MANIFESTS], "HEAD")

    def _pinned(self, paths: Iterable[str], commit: str) -> Mapping[str, set[str]]:
        """Return the versions of each dependency: those of lock files where there are any."""
        by_kind = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
        for path in paths:
            versions = citations.versions(path, self._past.content(commit, path))
            for name, version in versions.items():
                by_kind[citations.is_lock(path)][name].add(version)
        return by_kind[False] | by_kind[True]
