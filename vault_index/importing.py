"""Bring many lessons in at once: what would be written where first, then exactly that.

Nothing in the vault is ever overwritten. What is there already, by its words or nearly so, is left
out with the reason, so a second run changes nothing. A source file comes whole or not at all.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from vault_index import categories as tree
from vault_index import formats, lesson, manifest, rows
from vault_index.check import secrets
from vault_index.check.neighbours import DUPLICATE_COSINE
from vault_index.embed.cache import VectorCache
from vault_index.errors import LessonError, VaultError
from vault_index.formats import Draft

if TYPE_CHECKING:
    import numpy as np

    from vault_index.store import Row
    from vault_index.vault import Vault

INBOX = "inbox"  # the folder of what says no category: the classifier proposes one
WRITE, SAME, TAKEN = "write", "same", "taken"
DUPLICATE, SECRET = "duplicate", "secret"

Progress = Callable[[int, int], None]  # (lessons compared, lessons)

_BATCH = 256
_SUFFIXES = (".md", ".markdown", ".txt", ".jsonl", ".ndjson")


@dataclass(frozen=True, slots=True)
class Item:
    """A lesson file that could be written. `path` is relative to the vault's folder."""

    source: str
    line: int
    path: str
    title: str
    data: bytes
    verdict: str = WRITE  # write | same | taken | duplicate | secret
    why: str = ""  # it is not written


@dataclass(frozen=True, slots=True)
class Plan:
    """What an import would do. `problems` are sources that give nothing: `path:line: message`."""

    items: tuple[Item, ...]
    problems: tuple[str, ...] = ()

    @property
    def to_write(self) -> list[Item]:
        """The items that would be written."""
        return [item for item in self.items if item.verdict == WRITE]


@dataclass(slots=True)
class _Draft:
    """An item with the rows of its lessons' first passages."""

    item: Item
    firsts: list[Row] = field(default_factory=list)


def read(source: Path | bytes, format: str = "") -> tuple[list[tuple[str, Draft]], list[str]]:
    """Read a file, all files of a folder, or bytes; give (source, draft) pairs and problems.

    Raises VaultError for a source that is not there or holds nothing of these formats.
    """
    if isinstance(source, bytes):
        pairs: Iterator[tuple[str, bytes | OSError]] = iter([("-", source)])
    elif source.is_dir():
        if not format and (source / ".obsidian").is_dir():
            format = "obsidian"
        pairs = _files(source)
    else:
        pairs = iter([(source.name, _content(source))])
    drafts: list[tuple[str, Draft]] = []
    problems: list[str] = []
    found = False
    for name, data in pairs:
        found = True
        if isinstance(data, OSError):
            problems.append(f"{name}: cannot be read: {data.strerror}")
            continue
        kind = "" if format == "obsidian" and not name.endswith(".md") else format
        try:
            drafts += [(name, draft) for draft in formats.read(data, name, kind)]
        except LessonError as error:
            message = error.message.removeprefix(f"{name}: ")
            problems.append(f"{name}:{error.line}: {message}")
    if not found and isinstance(source, Path):
        raise VaultError(f"{source}: no file to import", f"one of: {', '.join(_SUFFIXES)}")
    return drafts, problems


def plan(
    vault: Vault,
    source: Path | bytes,
    *,
    format: str = "",
    category: str = "",
    progress: Progress = lambda _done, _all: None,
) -> Plan:
    """Say what an import would write where, and what it would leave out and why. Writes nothing.

    `format` is a key of `formats.FORMATS`, guessed without. `category` is for what says none. The
    index must be up to date: duplicates are looked for in it. Raises VaultError for a source that
    cannot be read, IndexStateError without an index.
    """
    filed = tree.normalise(category)
    if category and not filed:
        raise VaultError(f"not a category: {category!r}", "for example: devops/ci-cd")
    pairs, problems = read(source, format)
    drafts: list[_Draft] = []
    taken: dict[str, bytes] = {}
    for name, draft in pairs:
        item = _placed(vault, name, draft, filed, taken)
        drafts.append(_Draft(_judged(item)))
    _without_duplicates(vault, [one for one in drafts if one.item.verdict == WRITE], progress)
    return Plan(tuple(one.item for one in drafts), tuple(problems))


def carry_out(
    vault: Vault, planned: Plan, progress: Progress = lambda _done, _all: None
) -> list[Path]:
    """Write what a plan says; give the files. If one of a source fails, none of that source stays.

    Raises WriteError.
    """
    written: list[Path] = []
    of_source: list[Path] = []
    items = planned.to_write
    try:
        for number, item in enumerate(items, start=1):
            if number > 1 and item.source != items[number - 2].source:
                of_source = []
            file = vault.folder / item.path
            with manifest.writing(file):
                file.parent.mkdir(parents=True, exist_ok=True)
                if file.exists():  # it came since the plan was made
                    continue
                manifest.replace_file(file, item.data, keep_mode=True)
            of_source.append(file)
            written.append(file)
            progress(number, len(items))
    except BaseException:
        for file in of_source:
            with contextlib.suppress(OSError):
                file.unlink()
                manifest.remove_empty(file.parent, vault.folder)
        raise
    return written


def _files(folder: Path) -> Iterator[tuple[str, bytes | OSError]]:
    """Give the files of a folder, by path, that may hold lessons; hidden ones are not for others."""
    for file in sorted(folder.rglob("*")):
        inside = file.relative_to(folder)
        hidden = any(part.startswith(".") for part in inside.parts)
        if hidden or file.is_symlink() or not file.is_file() or file.suffix not in _SUFFIXES:
            continue
        try:
            yield str(inside), file.read_bytes()
        except OSError as error:
            yield str(inside), error


def _content(source: Path) -> bytes:
    try:
        return source.read_bytes()
    except OSError as error:
        raise VaultError(f"{source} cannot be read: {error.strerror}") from None


def _placed(
    vault: Vault, source: str, draft: Draft, category: str, taken: dict[str, bytes]
) -> Item:
    """Say where a draft goes; one of a name that another of this import has gets a number."""
    folder = draft.categories[0] if draft.categories else category or INBOX
    path = f"{folder}/{draft.name}.md"
    number = 2
    while path in taken and taken[path] != draft.data:
        path = f"{folder}/{draft.name}-{number}.md"
        number += 1
    first = lesson.parse_file(draft.data, path)[0]
    title = first.document or first.title
    item = Item(source, draft.line, path, title, draft.data)
    if path in taken:
        return replace(item, verdict=SAME, why="twice in what is imported")
    taken[path] = draft.data
    try:
        there = (vault.folder / path).read_bytes()
    except OSError:
        return item
    if there == draft.data:
        return replace(item, verdict=SAME, why="in the vault already")
    return replace(item, verdict=TAKEN, why="another lesson has this name in the vault")


def _judged(item: Item) -> Item:
    if item.verdict != WRITE:
        return item
    found = secrets.findings(item.path, item.data.decode())
    first = next(iter(found), None)
    return item if first is None else replace(item, verdict=SECRET, why=first.message)


def _without_duplicates(vault: Vault, drafts: list[_Draft], progress: Progress) -> None:
    """Mark the drafts all of whose lessons are in the vault, or in a draft before them, nearly so."""
    for draft in drafts:
        lessons = lesson.parse_file(draft.item.data, draft.item.path)
        draft.firsts = [rows.of_lesson(one, draft.item.path, None)[0] for one in lessons]
    everything = [row for draft in drafts for row in draft.firsts]
    columns = ("id", "path", "content_hash")
    known, vectors = vault.open_index().store.rows_and_vectors(columns, "id LIKE '%@0'")
    same = {str(row["content_hash"]): str(row["path"]) for row in known}
    found: list[str] = ["" for _ in everything]
    for number, row in enumerate(everything):
        found[number] = same.get(row["content_hash"], "")
        same.setdefault(row["content_hash"], f"lessons/{row['path']}")
    likeness = [1.0 if path else 0.0 for path in found]
    if vectors is not None:
        new = _vectors(vault, everything, progress)
        if new is not None:
            _compare(everything, new, [str(row["path"]) for row in known], vectors, found, likeness)
    at = 0
    for draft in drafts:
        of_draft = range(at, at + len(draft.firsts))
        at += len(draft.firsts)
        if all(found[number] for number in of_draft):
            best = max(of_draft, key=lambda number: likeness[number])
            why = f"{likeness[best]:.0%} like {found[best]}"
            draft.item = replace(draft.item, verdict=DUPLICATE, why=why)


def _compare(
    everything: Sequence[Row],
    new: np.ndarray,
    paths: Sequence[str],
    known: np.ndarray,
    found: list[str],
    likeness: list[float],
) -> None:
    """Find for each new vector the known one, or the new one before it, that is nearest."""
    import numpy as np

    for start in range(0, len(new), _BATCH):
        some = new[start : start + _BATCH]
        before = np.concatenate([known, new[:start]]) if start else known
        among = some @ some.T
        among[np.triu_indices(len(some))] = -1  # only those before it in the batch
        cosines = np.concatenate([some @ before.T, among], axis=1)
        best = cosines.argmax(axis=1)
        for number, place in enumerate(best):
            cosine = float(cosines[number, place])
            if cosine < DUPLICATE_COSINE or found[start + number]:
                continue
            likeness[start + number] = cosine
            other = int(place) - len(known)
            found[start + number] = (
                paths[place] if other < 0 else f"lessons/{everything[other]['path']}"
            )


def _vectors(vault: Vault, everything: Sequence[Row], progress: Progress) -> np.ndarray | None:
    """Embed what is new, and keep it for the index, which will ask for the same."""
    import numpy as np

    opened = vault.open_index()
    embedder = vault.embedder
    if embedder is None or embedder.name != opened.embedder or not everything:
        return None
    cache = VectorCache(vault.config.home, f"{embedder.name} {rows.RECIPE}", opened.store.dimension)
    by_hash = {row["content_hash"]: row for row in everything}
    known = cache.get(set(by_hash))
    missing = [row for key, row in by_hash.items() if key not in known]
    for start in range(0, len(missing), _BATCH):
        some = missing[start : start + _BATCH]
        embedded = rows.embed(embedder, some)
        fresh = {row["content_hash"]: one for row, one in zip(some, embedded, strict=True)}
        cache.put(fresh)
        known |= fresh
        progress(start + len(some), len(missing))
    return np.array([known[row["content_hash"]] for row in everything], np.float32)
