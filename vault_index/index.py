"""Make the index equal to the lessons on disk: added, changed, moved, removed -> embed -> write.

`sync` is the only way into the index, whoever asks. It looks at stat first, then at content, embeds
only passages whose text is not in the table yet, and writes in batches, each complete in itself: a
kill at any moment leaves an index that opens and answers, and the next sync goes on from there.
"""

from __future__ import annotations

import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from vault_index import git, lesson, manifest, rows, vault as vaults
from vault_index.errors import IndexStateError, LessonError
from vault_index.lesson import Lesson
from vault_index.manifest import FileEntry, Manifest
from vault_index.store import Row, Store

if TYPE_CHECKING:
    import numpy as np

    from vault_index.vault import Skipped, SourceFile, Vault

BATCH_PASSAGES = 512  # about six seconds of embedding between two commits
RACY_NS = 2_000_000_000  # a file that young may change again within one tick of its mtime
_BUILDING = "building"  # the folder of an index that is not whole yet

Progress = Callable[[int, int], None]  # (passages embedded, passages to embed)


@dataclass(frozen=True, slots=True)
class Problem:
    """A file that is not in the index as it stands, and why. `line` is 0 when none is to blame."""

    path: str
    line: int
    message: str


@dataclass(slots=True)
class Stats:
    """What a sync did, in files; `embedded` and `passages` count passages."""

    added: int = 0
    changed: int = 0
    moved: int = 0
    removed: int = 0
    unchanged: int = 0
    embedded: int = 0
    pending: int = 0  # files left for later: more than the caller has time for
    busy: bool = False  # another process is writing
    rebuilt: str = ""  # why everything was built anew, if it was
    seconds: float = 0.0
    problems: list[Problem] = field(default_factory=list)

    @property
    def wrote(self) -> bool:
        """Whether the index is not what it was."""
        return bool(self.added or self.changed or self.moved or self.removed or self.rebuilt)

    def __str__(self) -> str:
        names = ("added", "changed", "moved", "removed", "unchanged", "pending")
        parts = [f"{getattr(self, name)} {name}" for name in names if getattr(self, name)]
        return f"{', '.join(parts) or 'no lessons'}; {self.embedded} embedded"


@dataclass(slots=True)
class _Difference:
    """What the disk has and the manifest has not."""

    touched: list[SourceFile]  # new, or of another size or mtime
    removed: list[str]
    skipped: list[Skipped]
    head: str  # the commit now checked out

    def __len__(self) -> int:
        return len(self.touched) + len(self.removed)


@dataclass(slots=True)
class _Work:
    """The files whose rows must be written."""

    lessons: dict[str, list[Lesson]] = field(default_factory=dict)  # by path
    entries: dict[str, FileEntry] = field(default_factory=dict)


def sync(
    vault: Vault,
    *,
    rebuild: bool = False,
    at_most: int | None = None,
    wait: bool = True,
    progress: Progress = lambda _done, _all: None,
) -> Stats:
    """Bring the index up to date with the files, and tell what was done.

    `rebuild` builds a new index beside the old one and swaps. `at_most` is for callers in a hurry:
    if more files than that differ nothing is done and `Stats.pending` counts them, and git is not
    asked who wrote what. Without `wait`, if another process is writing, nothing is done.

    Raises WriteError, EmbedderError, and IndexStateError for an index of a newer version.
    """
    started = time.monotonic()
    ask_git = at_most is None
    reason = "asked for" if rebuild else _why_rebuild(vault)
    if at_most is not None and reason:
        return Stats(pending=len(vault.files()[0]))
    if not reason:
        known = manifest.load(_current(vault))
        difference = _difference(vault, known, ask_git)
        if not difference and difference.head == known.head:
            return _stats(known, difference.skipped, started)
        if at_most is not None and len(difference) > at_most:
            return Stats(pending=len(difference))
    with _locked(vault, wait) as free:
        if not free:
            return Stats(busy=True)
        reason = "asked for" if rebuild else _why_rebuild(vault)  # it may have changed meanwhile
        if not reason:
            try:
                return _bring_up_to_date(vault, _current(vault), ask_git, progress, started)
            except IndexStateError:
                reason = "the index was damaged"
        return _build(vault, reason, progress, started)


def _why_rebuild(vault: Vault) -> str:
    """Say why the index in force cannot be brought up to date; "" if it can."""
    index = manifest.current(vault.index_folder)
    if index is None:
        return "first index"
    try:
        known = manifest.load(index)
    except IndexStateError as error:
        if error.newer:
            raise
        return error.message
    if known.schema != manifest.SCHEMA:
        return f"the index had schema {known.schema}, now it is {manifest.SCHEMA}"
    name = vault.embedder.name if vault.embedder else manifest.NO_EMBEDDER
    if known.embedder != name:
        return f"the index was built with {known.embedder}, now it is {name}"
    return "" if Store(index, known.dimension).exists() else "the index was damaged"


def _current(vault: Vault) -> Path:
    index = manifest.current(vault.index_folder)
    if index is None:
        raise IndexStateError("the index is gone", "run `lessons index`")
    return index


def _build(vault: Vault, reason: str, progress: Progress, started: float) -> Stats:
    """Build a new index beside the one in force, then swap. An interrupted build is gone on with."""
    building = vault.index_folder / _BUILDING
    embedder = vault.embedder
    name = embedder.name if embedder else manifest.NO_EMBEDDER
    if not _can_resume(building, name) or reason == "asked for":
        shutil.rmtree(building, ignore_errors=True)
        dimension = embedder.dimension if embedder else 0
        with manifest.writing(building):
            building.mkdir()
        Store(building, dimension).create()
        manifest.save(building, Manifest(manifest.SCHEMA, name, dimension))
    stats = _bring_up_to_date(vault, building, True, progress, started)
    with manifest.writing(building):
        stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
        index = building.rename(vault.index_folder / f"{stamp}-{secrets.token_hex(2)}")
    manifest.make_current(vault.index_folder, index)
    stats.rebuilt = reason
    return stats


def _can_resume(building: Path, name: str) -> bool:
    try:
        begun = manifest.load(building)
    except IndexStateError:
        return False
    whole = Store(building, begun.dimension).exists()
    return whole and begun.schema == manifest.SCHEMA and begun.embedder == name


def _bring_up_to_date(
    vault: Vault, index: Path, ask_git: bool, progress: Progress, started: float
) -> Stats:
    """Do the whole of a sync on one index folder; the caller holds the lock."""
    known = manifest.load(index)
    store = Store(index, known.dimension)
    difference = _difference(vault, known, ask_git)
    authored = _authored(vault, known, difference)
    work = _read(vault, known, difference, authored)
    stats = _count(known, difference, work)
    batches = list(_batches(work))
    pending = [row for batch in batches for row in batch]
    vectors = _known_vectors(store, pending)
    missing = len({row["content_hash"] for row in pending} - set(vectors))
    for number, batch in enumerate(batches):
        last = number == len(batches) - 1
        new = {row["content_hash"]: row for row in batch if row["content_hash"] not in vectors}
        if store.dimension and new:
            vectors |= zip(new, rows.embed(_embedder(vault), list(new.values())), strict=True)
            stats.embedded += len(new)
            progress(stats.embedded, missing)
        for row in batch:
            if store.dimension:
                row["vector"] = vectors[row["content_hash"]]
        paths = {row["path"].partition("/")[2] for row in batch} | (
            # files without a lesson left have no row in any batch
            {path for path in work.lessons if not work.lessons[path]} if last else set()
        )
        gone = difference.removed if last else []
        store.replace_paths(batch, [_shown(path) for path in (*paths, *gone)])
        for path in paths:
            known.files[path] = work.entries.pop(path)
        if not last:
            manifest.save(index, known)
    known.files.update(work.entries)  # the same content, or a problem: no rows to write
    for path in difference.removed:
        known.files.pop(path, None)
    if batches:
        store.settle()
    known.head = difference.head
    manifest.save(index, known)
    done = _stats(known, difference.skipped, started)
    stats.problems, stats.seconds = done.problems, done.seconds
    return stats


def _difference(vault: Vault, known: Manifest, ask_git: bool) -> _Difference:
    """Compare the disk with a manifest by size and mtime."""
    files, skipped = vault.files()
    touched = [
        file
        for file in files
        if (entry := known.files.get(file.path)) is None
        or (entry.size, entry.mtime_ns) != (file.size, file.mtime_ns)
    ]
    # what stands below a folder that cannot be listed is not known to be gone
    hidden = tuple("" if skip.path == "." else skip.path for skip in skipped if skip.hides)
    there = {file.path for file in files}
    removed = [path for path in known.files if path not in there and not path.startswith(hidden)]
    head = (git.head(vault.root) or "") if ask_git else known.head
    return _Difference(touched, removed, skipped, head)
