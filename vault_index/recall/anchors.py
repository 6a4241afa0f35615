"""Anchors: the code that a lesson is about, compared at delivery with the day it was confirmed.

    anchors: ["store/upload.py#retry@3f2a91c0", "Makefile"]

names a file from the top of the vault's repository, a definition or heading in it, and the hash that the
region had when the lesson was accepted or confirmed. A region is a definition with all that is indented
below it, or a section of markdown; without a name it is the file. A lesson whose region changed says so
in its line. Hooks leave out one whose region is gone. `stale` lists both.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from vault_index import files, git
from vault_index.errors import VaultError
from vault_index.lesson import edits
from vault_index.lesson.parse import Anchor, anchor_of, parse_time
from vault_index.store import filters

if TYPE_CHECKING:
    from vault_index.retrieval.hit import Hit
    from vault_index.vault import Vault

KEY = "anchors"  # of a lesson's frontmatter
MAX_ANCHORS = 5  # of a lesson; others are not looked at
MAX_PROPOSED = 2
MAX_BYTES = 128 * 1024  # of a file; of a longer one only the beginning counts
MAX_LINE = 1000  # characters of a line that may begin a region
SAME, CHANGED, GONE, NEW = "unchanged", "changed", "gone", "not confirmed"
_DEFINES = (
    r"(?:[\w@]+\s+)*?(?:def|class|function|func|fn|type|struct|interface|enum|trait|impl|const|let"
    r"|var|module|proc)\s+(?:\([^)\n]*\)\s*)?"
)
_CLOSES = re.compile(r"[\]})]|end\b")
_HEADING = re.compile(r"(#+)[ \t]+(\S.*)")
_NAME = re.compile(rf"^[-+ ]?\s*{_DEFINES}([A-Za-z_$][\w$]{{2,}})")
_PATH = re.compile(r"\+\+\+ b/([^\t\n]+)")
_HUNK = re.compile(r"@@ [^@\n]* @@ ?(.*)")


def read(texts: Iterable[str]) -> list[Anchor]:
    """Return the anchors that texts of a lesson spell, as many as count."""
    return [each for each in map(anchor_of, texts) if each][:MAX_ANCHORS]


def top_of(vault: Vault) -> Path:
    """Return the folder that anchors begin at."""
    return git.top_of(vault.root) or vault.root


def state(top: Path, anchor: Anchor) -> str:
    """Return SAME, CHANGED, GONE, or NEW where nobody confirmed it."""
    now = hash_of(top, anchor)
    if not now:
        return GONE
    return NEW if not anchor.hash else SAME if anchor.hash == now else CHANGED


def hash_of(top: Path, anchor: Anchor) -> str:
    """Return the hash of a region as it is now, whatever its line ends; "" where it is gone."""
    try:
        files.refuse_links(top / anchor.path, top)
        return hash_in(files.read_if_any(top / anchor.path, MAX_BYTES) or b"", anchor.name)
    except (VaultError, OSError, ValueError):
        return ""


def hash_in(data: bytes, name: str) -> str:
    """Return the hash of a region of a file, "" if the file has no such region."""
    lines = region(data[:MAX_BYTES].decode("utf-8", "replace").splitlines(), name)
    plain = "\n".join(line.rstrip() for line in lines).strip("\n")
    return blake2b(plain.encode(), digest_size=4).hexdigest() if plain else ""


def region(lines: Sequence[str], name: str) -> Sequence[str]:
    """Return the lines of a named definition or section; all lines without a name, [] if missing."""
    if not name:
        return lines
    last = re.escape(name.rpartition(".")[2])
    defines = re.compile(rf"(?P<indent>\s*)(?:{_DEFINES}{last}\b|{last}\s*(?:\([^;]*\)\s*\{{|=|:))")
    word, slug = name.rpartition(".")[2], _slug(name)
    for at, line in enumerate(lines):
        if len(line) > MAX_LINE:
            continue
        heading = _HEADING.match(line) if line[:1] == "#" else None
        if heading and _slug(heading[2]) == slug:
            return _section(lines, at, len(heading[1]))
        if word in line and (match := defines.match(line)):
            return _indented(lines, at, len(match["indent"]))
    return []


def _section(lines: Sequence[str], at: int, level: int) -> Sequence[str]:
    for end in range(at + 1, len(lines)):
        heading = _HEADING.match(lines[end])
        if heading and len(heading[1]) <= level:
            return lines[at:end]
    return lines[at:]


def _indented(lines: Sequence[str], at: int, indent: int) -> Sequence[str]:
    for end in range(at + 1, len(lines)):
        line = lines[end].strip()
        is_deeper = not line or len(lines[end]) - len(lines[end].lstrip()) > indent
        closes = _CLOSES.match(line)
        if not is_deeper and not (closes and line.endswith((":", "{"))):
            return lines[at : end + bool(closes)]
    return lines[at:]


def _slug(text: str) -> str:
    return re.sub(r"[^\w]+", "-", text.lower()).strip("-")


def only_there(vault: Vault, hits: Iterable[Hit]) -> list[Hit]:
    """Drop hits whose code is gone, and mark anchors that changed since the lesson was confirmed."""
    kept, top = [], None
    for hit in hits:
        states: list[tuple[str, str]] = []
        if hit.anchors:
            top = top or top_of(vault)
            states = [(state(top, each), each.shown) for each in read(hit.anchors)]
        if not any(each == GONE for each, _ in states):
            changed = ", ".join(shown for each, shown in states if each == CHANGED)
            kept.append(replace(hit, changed=changed) if changed else hit)
    return kept


def hashed(vault: Vault, anchors: Iterable[Anchor]) -> list[str]:
    """Return anchors with their current hashes; an anchor whose region is gone is unchanged."""
    top = top_of(vault)
    return [str(replace(each, hash=hash_of(top, each) or each.hash)) for each in anchors]


def proposed(diff: str, text: str) -> tuple[str, ...]:
    """Return anchors for a lesson's text: definitions that a diff changed and that it names."""
    changed: dict[str, list[str]] = {}  # path -> definitions that its hunks are in or change
    names = list[str]()
    for line in diff.splitlines():
        if match := _PATH.fullmatch(line):
            names = changed.setdefault(match[1], [])
            continue
        hunk = _HUNK.match(line)
        name = _NAME.match(hunk[1] if hunk else line if line[:1] in "+-" else "")
        names += [name[1]] if name and not line.startswith("-") else []
    anchors = []
    for path, names in changed.items():
        named = [name for name in names if re.search(rf"\b{re.escape(name)}\b", text)]
        is_named = path in text or f"`{path.rpartition('/')[2]}`" in text
        anchors += [f"{path}#{name}" for name in named] or ([path] if is_named else [])
    return tuple(dict.fromkeys(anchors))[:MAX_PROPOSED]


# Lessons whose subject changed: one rule, for the whole vault and for a change under review.
#
# A lesson is about the regions of code that its anchors name, and about the files whose paths its text
# cites. It needs another look if such a region is not as it was confirmed, or if the repository had such
# a file and has it no more. `reasons` compares with the day on which the lesson was confirmed, else last
# changed; `touched` with a commit. A path that the repository never had is no reason, so a vault may
# serve several. Nothing is changed here.


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
    """Return which lessons are about what changed since a commit, by lesson.

    A region that was confirmed as it is now is no reason. Raises IndexStateError without an index.
    """
    top = top_of(vault)
    lessons = list(_lessons(vault))
    removed = set(git.changed_since(top, commit, "D"))
    had, there = _Paths(removed), _Paths(set(git.files(top)) - removed)
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
            if had.meant(cited) and not there.meant(cited):
                listed.append(lesson.reason("file", f"it removes {cited}"))
    return sorted(listed, key=lambda each: (each.lesson, each.why))


def cited_in(text: str) -> frozenset[str]:
    """Return the paths of files that a text cites."""
    every = frozenset(_CITED_PATH.findall(text[:MAX_CHARS]))
    cited = frozenset(path for path in every if path.lower() not in _COMMON_FILES)
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
    there = _Paths(git.files(top))
    missing = [
        (lesson, cited)
        for lesson in lessons
        if lesson.written  # what is not committed has no past
        for cited in sorted(lesson.cited)
        if not there.meant(cited) and not os.path.exists(top / cited)  # noqa: PTH110  # Path's raises for long names
    ]
    if not missing:
        return
    removals = git.removals(top, int(min(lesson.written for lesson, _ in missing)))
    inside = os.path.relpath(os.path.realpath(vault.lessons_dir), top)
    had = _Paths(path for path in removals if not path.startswith(f"{inside}/"))
    for lesson, cited in missing:
        days = [
            removed.committed
            for removed in map(removals.__getitem__, had.meant(cited))
            # the commit that wrote the lesson knew of it
            if removed.written != lesson.written
            and removed.committed >= max(lesson.written, lesson.confirmed)
        ]
        if days:
            day = datetime.fromtimestamp(max(days), UTC).date().isoformat()
            yield lesson.reason("file", f"{cited} was removed on {day}")
