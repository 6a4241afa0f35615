"""Make the index equal to the lesson files on disk, and what follows from lessons and skills.

`sync`, `rebuild` and `at_once` are the only ways into the index. They compare by stat, then by content,
embed only new passages, and write in batches: see `store.sync`. A *full pass* does all of it; a *quick
pass* (after a save) leaves out git and most derived tables.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from vault_index import features
from vault_index.embed.cache import VectorCache
from vault_index.errors import EmbedderError, IndexStateError, LaterError
from vault_index.features import IndexTable
from vault_index.hotpath.index_files import FOLDER
from vault_index.index import checking, diff, rows
from vault_index.index.derived import (
    CATEGORIES,
    DERIVED,
    FOLDED_ROWS,
    TEXT_INDEX,
    Derived,
    Sources,
)
from vault_index.index.diff import Diff, PendingFiles
from vault_index.lesson.parse import id_of
from vault_index.store import completing, filters, injections, manifest, ownership
from vault_index.store.completing import Completed
from vault_index.store.lance import Table
from vault_index.store.manifest import Manifest, Problem, ReadFile
from vault_index.store.schema import LESSONS, RECIPE
from vault_index.store.sync import (
    ASKED_FOR,
    MANY,
    Away,
    Progress,
    Source,
    Stats,
    Work,
    Writer,
    vectors_from,
)
from vault_index.vault import Vault

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np

    from vault_index.embed import Embedder
    from vault_index.store.schema import LessonRow

_SHORTENED = "found by its first part alone, or by words: the model refuses its text"
BATCH_PASSAGES = 512  # about six seconds of embedding between two commits
BATCHES = 100  # of many files at most
FILES_AT_ONCE = 8  # changed files that are embedded while a prompt or a save waits: 0.1 to 0.2 s


def _silent(_done: int, _all: int) -> None:
    """Show nobody how many files are done."""


def sync(
    vault: Vault,
    *,
    wait: bool = True,
    read_all: bool = False,
    completes: bool = True,
    progress: Progress = _silent,
    progress_of_checks: Progress = _silent,
    progress_of_vectors: Progress = _silent,
) -> Stats:
    """Bring the index up to date with the files, however many differ, and return its statistics.

    Without `wait`, if another process is writing, nothing is done. `read_all` compares the content of
    every file, whatever its stat. Many new lessons are found by words first; they are checked and get
    their vectors after that, unless the caller has somebody else that `completes` them. Raises
    WriteError, EmbedderError, and IndexStateError for an index of a newer version; `rebuild` and
    `at_once` do, too.
    """
    lessons = LessonSource(vault, read_all=read_all, progress=progress)
    stats = lessons.sync_or_by_words(wait=wait)
    if not completes or stats.busy or not stats.is_unfinished:
        return stats
    done = complete(vault, progress_of_vectors, progress_of_checks)
    took = time.monotonic() - lessons.started
    return replace(_with_completed(stats, done), seconds=took)


def rebuild(vault: Vault, *, wait: bool = True, progress: Progress = _silent) -> Stats:
    """Build a new index beside the old one, without anything that is kept, and swap.

    Saves are taken in meanwhile, and are in the new one.
    """
    stats = LessonSource(vault, progress=progress).sync_or_by_words(rebuild=True, wait=wait)
    return _with_completed(stats, complete(vault)) if stats.is_unfinished else stats


def complete(
    vault: Vault, progress: Progress = _silent, progress_of_checks: Progress = _silent
) -> Completed:
    """Check the files that are not checked yet, make the vectors that rows lack, and what follows.

    Nothing is done while somebody does so. `progress` gets the vectors that are made, and those to make,
    `progress_of_checks` the files. Raises WriteError, IndexStateError.
    """
    lessons = LessonSource(vault, progress_of_checks=progress_of_checks)
    done = completing.complete(lessons, progress)
    if done.wrote and not done.lacking:
        LessonSource(vault).sync_or_by_words()
    taken, trouble = lessons.shared.finish() if lessons.shared is not None else (0, "")
    return replace(done, taken=taken, shared=trouble, shortened=sorted(lessons.shortened))


def _with_completed(stats: Stats, done: Completed) -> Stats:
    """Add the vectors that were made after a sync to its result."""
    if done.unbuilt:  # the embedder came back this moment
        return stats
    shortened = [Problem(path, 0, _SHORTENED) for path in done.shortened]
    return replace(
        stats,
        embedded=stats.embedded + done.embedded,
        taken=stats.taken + done.taken,
        shared=done.shared or stats.shared,
        lacking=stats.lacking if done.busy else done.lacking,
        unchecked=stats.unchecked if done.busy else 0,
        no_vectors=done.why or stats.no_vectors,
        problems=[*stats.problems, *shortened],
    )


def at_once(vault: Vault, *, full: bool) -> Stats:
    """Take in a few changed files, for a caller that cannot wait: for no process and no network.

    If more than `FILES_AT_ONCE` differ nothing is done, and `Stats.pending` counts them. Without `full`
    new lessons are found, but their scores are a little off, and authors, dates, proposals and documents
    stay stale until a full pass.
    """
    lessons = LessonSource(vault, full=full, is_hurried=True)
    return lessons.sync_or_by_words(wait=False, at_most=FILES_AT_ONCE)


def tidy(vault: Vault) -> bool:
    """Remove old versions. False if some are too young for it, or somebody is writing.

    Raises WriteError, IndexStateError.
    """
    with ownership.held(vault.index_dir, wait=False) as is_free:
        if not is_free:
            return False
        index = manifest.current(vault.index_dir)
        if index is None:
            raise IndexStateError("the index is gone", "run `lessons index`")
        is_tidy = Table(index, manifest.load(index).dimension).tidy()
        manifest.touch(index)  # readers leave the version that they have open
        return is_tidy


@dataclass
class LessonSource(Source[Diff, Stats]):
    """The lesson files of a vault, and how they are synced."""

    vault: Vault
    full: bool = True
    read_all: bool = False
    is_hurried: bool = False
    progress: Progress = _silent  # gets the files written, and those to write
    progress_of_checks: Progress = _silent
    shortened: set[str] = field(default_factory=set)

    shared: Any = None  # the vectors of a team, if it shares some

    columns = LESSONS
    schema = manifest.SCHEMA
    folder = f"{FOLDER}/"
    rebuilds_aside = True

    def __post_init__(self) -> None:
        super().__init__(self.vault)

    def compare(self, known: Manifest, *, rebuild: bool = False) -> Diff:
        """Compare the files with a manifest; for a rebuild git is asked about all."""
        full, read_all = self.full or rebuild, self.read_all and not rebuild
        return diff.scan(self.vault, known, full, read_all=read_all)

    def refuse_silent_embedder(self) -> None:
        """Raise EmbedderError where the embedder does not answer; a server is not asked in a hurry."""
        if self.is_hurried and not self.vault.config.is_built_in:
            raise LaterError("the embedder is asked in the background")
        super().refuse_silent_embedder()

    def with_embedder(self, embedder: Away | None) -> LessonSource:
        """Return the same with another embedder; the vault of the caller keeps its own."""
        vault = Vault(self.vault.root, self.vault.config)
        vault.embedder = embedder
        return replace(self, vault=vault)

    def is_current(self, work: Work[Diff]) -> bool:
        due = self._due(work)
        return work.changes.is_empty(work.manifest) and not any(
            table.is_stale(self.vault, work.manifest) for table in due
        )

    def nothing(self, work: Work[Diff] | None) -> Stats:
        if work is None:
            return Stats()
        problems = diff.problems(work.manifest, work.changes.skipped)
        owes = self._owes(work.manifest)
        return Stats(
            unchanged=work.changes.unchanged,
            owes=owes,
            problems=problems,
            no_authors=work.changes.git_error,
            lacking=len(manifest.waiting(work.manifest)),
            unchecked=len(manifest.unchecked(work.manifest)),
        )

    def update(self, work: Work[Diff]) -> Stats:
        """Do the whole of a sync on one index; the caller holds the lock."""
        vault, before, changes = self.vault, work.manifest, work.changes
        if len(changes) > BATCH_PASSAGES:  # the first look takes seconds
            self.progress(0, len(changes))
        authors = diff.ask_git(vault, before, changes)
        is_whole = work.reason == ASKED_FOR
        check_at_most = float("inf") if is_whole else diff.CHECKED_AT_ONCE
        read = diff.read(vault, before, changes, authors, check_at_most)
        injections.rename(vault.config.home, vault.root, _renamed(before, changes, read))
        lessons = Table(work.index, before.dimension)
        at_most = None if is_whole else self._at_most
        sources = Sources(vault, lessons, before, use_cache=not is_whole, at_most=at_most)
        shared = self._shared(work.index) if not (is_whole or self.is_hurried) else None
        cache = sources.cache(RECIPE, shared)
        after = self._write(sources, cache, read, changes.removed)
        after = replace(after, head=authors.head)
        if not self.is_hurried and not manifest.waiting(after):
            at_most = None  # nobody completes derived tables later
        sources = replace(sources, manifest=after, at_most=at_most)
        stats = _count(before, changes, read)
        stats = replace(stats, embedded=cache.embedded, no_authors=authors.error)
        shortened = [Problem(path, 0, _SHORTENED) for path in sorted(self.shortened)]
        if shared is not None:
            taken, trouble = shared.finish()
            stats = replace(stats, taken=taken, shared=trouble)
        after, stats = self._refresh_derived(sources, stats, self._due(work))
        manifest.save(work.index, after, even_if_same=False)
        problems = [*diff.problems(after, changes.skipped), *shortened]
        owes = self._owes(after)
        return replace(
            stats,
            owes=owes,
            lacking=len(manifest.waiting(after)),
            unchecked=len(manifest.unchecked(after)),
            problems=problems,
        )

    def _write(
        self, sources: Sources, cache: VectorCache, read: PendingFiles, removed: Collection[str]
    ) -> Manifest:
        before, embedder = sources.manifest, self.vault.embedder
        if read.changed or removed:  # until all are in, git is to be asked about all
            before = replace(before, head="", derived={})
        vectors = vectors_from(cache, embedder, self.make)
        at_once = max(
            BATCH_PASSAGES, len(read.changed) // BATCHES
        )  # each writes all of the manifest
        writer = Writer(sources.lessons, vectors, at_once, self.folder)
        count, written = len(read.entries), 0

        def tell(batch: Sequence[ReadFile], differing: int) -> None:
            nonlocal written
            written += len(batch)
            if differing:
                self.progress(written, count)

        return writer.write(before, read, read.changed, removed, tell)

    @property
    def _at_most(self) -> int:
        """Return the most vectors to make while rows are written: none by a server in a hurry."""
        return 0 if self.is_hurried and not self.vault.config.is_built_in else MANY

    def _shared(self, index: Path) -> Any:
        """Return the vectors that a team shares, which are asked only where there is an embedder."""
        embedder = self.vault.embedder
        if (
            not self.vault.config[IndexTable].shared
            or embedder is None
            or isinstance(embedder, Away)
        ):
            return None
        offered = (feature.vectors(self.vault, index) for feature in features.FEATURES)
        return next(filter(None, offered), None)

    def make(self, embedder: Embedder, some: Sequence[LessonRow]) -> list[np.ndarray]:
        """Embed rows, and note the files of which the model took only the first part of a text."""
        vectors = rows.embed(embedder, some)
        if cut := getattr(embedder, "shortened", None):
            self.shortened |= {row["path"] for row in some if rows.embedded_text(row) in cut}
        return vectors

    def cache_of(self, index: Path, known: Manifest) -> VectorCache:
        """Return the vectors that are kept, and those that a team shares."""
        self.shared = self._shared(index)
        lessons = Table(index, known.dimension)
        return Sources(self.vault, lessons, known, use_cache=True).cache(RECIPE, self.shared)

    def contents_of(
        self, table: Table, known: Manifest, paths: Sequence[str]
    ) -> dict[str, LessonRow]:
        """Return the rows of files as far as they are embedded."""
        del known
        named = [self.folder + path for path in paths]
        batches = (table.rows(rows.EMBEDDED, where) for where in filters.some_of("path", named))
        return {row["content_hash"]: cast("LessonRow", row) for some in batches for row in some}

    def complete_checks(self) -> bool:
        """Check the files that are not checked yet; whether rows were written."""
        return checking.complete(self.vault, self.progress_of_checks)

    def finish(self, table: Table, after: Manifest, written: int) -> None:
        """Save the manifest, and have what follows from vectors made again by the next full pass."""
        stale = {CATEGORIES}
        if written >= FOLDED_ROWS:
            table.fold()
        elif written:
            stale.add(TEXT_INDEX)
        derived = {name: after.derived[name] for name in after.derived.keys() - stale}
        manifest.save(table.index, replace(after, derived=derived))

    def _due(self, work: Work[Diff]) -> list[Derived]:
        is_full = self.full or bool(work.reason)
        return [table for table in DERIVED if is_full or table.is_quick]

    def _owes(self, known: Manifest) -> bool:
        return not self.full and any(table.is_stale(self.vault, known) for table in DERIVED)

    def _refresh_derived(
        self, sources: Sources, stats: Stats, due: Sequence[Derived]
    ) -> tuple[Manifest, Stats]:
        """Make the derived tables again that are stale, one after another."""
        for table in due:
            if not table.is_stale(self.vault, sources.manifest):
                continue
            if not manifest.is_dirty(sources.lessons.index):
                manifest.mark_dirty(sources.lessons.index, [])
            # the lessons are in; the next sync tries again
            with contextlib.suppress(EmbedderError):
                done = table.refresh(sources)
                sources = replace(sources, manifest=done.manifest)
                skills = stats.skills if done.skills is None else done.skills
                stats = replace(stats, refiled=stats.refiled + done.refiled, skills=skills)
        return sources.manifest, stats


def _count(before: Manifest, changes: Diff, read: PendingFiles) -> Stats:
    """Count files by what happened to them; a file that went and came with one content moved."""
    removed = Counter(before.files[path].hash for path in changes.removed)
    happened: Counter[str] = Counter()
    touched = {path: now.hash for path, now in read.entries.items() if path in changes.touched}
    for path, content in touched.items():
        old = before.files.get(path)
        if old and old.hash:
            happened["unchanged" if content == old.hash else "changed"] += 1
        elif removed[content]:
            removed[content] -= 1
            happened["moved"] += 1
        else:
            happened["added"] += 1
    return Stats(
        added=happened["added"],
        changed=happened["changed"],
        moved=happened["moved"],
        removed=removed.total(),
        unchanged=changes.unchanged + happened["unchanged"],
    )


def _renamed(before: Manifest, changes: Diff, read: PendingFiles) -> dict[str, str]:
    old_paths = {before.files[path].hash: path for path in sorted(changes.removed)}
    came = {now.hash: path for path, now in read.entries.items() if path not in before.files}
    return {
        id_of(old_paths[hash]): id_of(came[hash]) for hash in sorted(old_paths.keys() & came.keys())
    }
