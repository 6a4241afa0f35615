"""Lessons whose subject changed: one rule, for the whole vault and for a change under review.

A lesson is about the regions of code that its anchors name, and about the files whose paths its text
cites. It needs another look if such a region is not as it was confirmed, or if the repository had such
a file and has it no more. `reasons` compares with the day on which the lesson was confirmed, else last
changed; `touched` with a commit. A path that the repository never had is no reason, so a vault may
serve several. Nothing is changed here.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, time
from pathlib import Path
from typing import TYPE_CHECKING

from vault_index import files, git
from vault_index.errors import VaultError
from vault_index.lesson import edits
from vault_index.lesson.parse import Anchor, parse_time
from vault_index.store import filters

if TYPE_CHECKING:
    from vault_index.vault import Vault
from vault_index.recall.anchors import CHANGED, GONE, hash_in, hash_of, read, state, top_of

_COLUMNS = ("lesson_id", "title", "text", "path", "anchors", "updated_at")
CONFIRMED = "confirmed"  # the key of a lesson's frontmatter
MAX_CHARS = 20_000  # of a lesson that are read
MAX_CITED = 40  # a lesson that cites more paths is a list
_WHY = {
    GONE: "is gone: hooks leave the lesson out",
    CHANGED: "changed since it was confirmed",
}
_CITED_PATH = re.compile(
    r"(?<![\w/.:@~$*<{-])(?:\./)?((?:[\w.@+-]+/)+[\w.@+-]*[\w+-]|[\w-][\w.-]*\.[A-Za-z]\w{0,7})"
    r"(?![\w/*<{$]|\.\w)"
)
_COMMON_FILES = frozenset(
    "readme.md package.json changelog.md license makefile dockerfile setup.py index.js index.ts main.py"
    " __init__.py conftest.py pyproject.toml cargo.toml go.mod .gitignore skill.md agents.md claude.md"
    .split()
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a lesson should be looked at: its `kind` is "wrong", "anchor" or "file"."""

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
    cited: frozenset[str]
    anchors: list[Anchor]
    written: float  # its last commit, in seconds since 1970; 0 before the first
    confirmed: float  # the end of that day; 0 if never

    def reason(self, kind: str, why: str) -> Reason:
        return Reason(self.id, self.title, self.path, kind, why, f"lessons edit {self.id}")


def reasons(vault: Vault) -> list[Reason]:
    """Return today's reasons, by lesson. Raises IndexStateError without an index."""
    top = top_of(vault)
    lessons = list(_lessons(vault))
    listed = []
    for lesson in lessons:
        for each in lesson.anchors:
            if why := _WHY.get(state(top, each)):
                listed.append(lesson.reason("anchor", f"{each.shown} {why}"))
    return sorted([*listed, *_lost(vault, top, lessons)], key=lambda each: (each.lesson, each.why))


def touched(vault: Vault, commit: str) -> list[Reason]:
    """Return the reasons to look at lessons, by changes since a commit, sorted by lesson.

    A region that was confirmed as it is now is no reason. Raises IndexStateError without an index.
    """
    top = top_of(vault)
    lessons = list(_lessons(vault))
    removed = set(git.changed_since(top, commit, "D"))
    old_paths, current_paths = _Paths(removed), _Paths(set(git.files(top)) - removed)
    regions = {each.path: (commit, each.path) for lesson in lessons for each in lesson.anchors}
    before = git.contents(top, regions)
    listed = []
    for lesson in lessons:
        for each in lesson.anchors:
            was = hash_in(before.get(each.path, b""), each.name)
            now = hash_of(top, each)
            if was and now not in (was, each.hash or was):
                does = "changes" if now else "removes"
                listed.append(lesson.reason("anchor", f"it {does} {each.shown}"))
        for cited in sorted(lesson.cited):
            if old_paths.meant(cited) and not current_paths.meant(cited):
                listed.append(lesson.reason("file", f"it removes {cited}"))
    return sorted(listed, key=lambda each: (each.lesson, each.why))


def cited_in(text: str) -> frozenset[str]:
    """Return the paths of files that a text cites."""
    paths = frozenset(_CITED_PATH.findall(text[:MAX_CHARS]))
    cited = frozenset(path for path in paths if path.lower() not in _COMMON_FILES)
    return cited if len(cited) <= MAX_CITED else frozenset()


class _Paths:
    """The paths of a repository, which a lesson may cite by their last parts."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._by_name: dict[str, list[str]] = defaultdict(list)
        for path in paths:
            self._by_name[path.rpartition("/")[2]].append(path)

    def meant(self, cited: str) -> list[str]:
        same = self._by_name.get(cited.rpartition("/")[2], ())
        return [path for path in same if f"/{path}".endswith(f"/{cited}")]


def _lessons(vault: Vault) -> Iterator[_Lesson]:
    rows = vault.open_index().store.rows(_COLUMNS, filters.WHOLE)
    confirmed: dict[str, float] = {}
    for row in rows:
        path = str(row["path"])
        if path not in confirmed:
            data = b""
            with suppress(VaultError):  # `check` reports it
                data = files.read_if_any(vault.root / path) or b""
            confirmed[path] = _confirmed(data, path)
        cited, about = cited_in(str(row["text"])), read(row["anchors"])
        written = row["updated_at"].timestamp() if row["updated_at"] else 0.0
        yield _Lesson(row["lesson_id"], row["title"], path, cited, about, written, confirmed[path])


def _confirmed(data: bytes, path: str) -> float:
    """Return the end of the day on which a lesson file was confirmed; 0 if it was not."""
    with suppress(VaultError, ValueError):  # `check` reports it
        day = (
            parse_time(edits.keys_of(data, path).get(CONFIRMED))
            if b"\nconfirmed:" in data
            else None
        )
        return datetime.combine(day, time.max, UTC).timestamp() if day else 0.0
    return 0.0


def _lost(vault: Vault, top: Path, lessons: Iterable[_Lesson]) -> Iterator[Reason]:
    """Yield the files that lessons cite and that commits removed after the lesson was right."""
    current_paths = _Paths(git.files(top))
    missing = [
        (lesson, cited)
        for lesson in lessons
        if lesson.written  # what is not committed has no past
        for cited in sorted(lesson.cited)
        if not current_paths.meant(cited) and not os.path.exists(top / cited)  # noqa: PTH110  # Path's raises for long names
    ]
    if not missing:
        return
    removals = git.removals(top, int(min(lesson.written for lesson, _ in missing)))
    inside = os.path.relpath(os.path.realpath(vault.lessons_dir), top)
    old_paths = _Paths(path for path in removals if not path.startswith(f"{inside}/"))
    for lesson, cited in missing:
        days = [
            removed.committed
            for removed in map(removals.__getitem__, old_paths.meant(cited))
            # the commit that wrote the lesson knew of it
            if removed.written != lesson.written
            and removed.committed >= max(lesson.written, lesson.confirmed)
        ]
        if days:
            day = datetime.fromtimestamp(max(days), UTC).date().isoformat()
            yield lesson.reason("file", f"{cited} was removed on {day}")
