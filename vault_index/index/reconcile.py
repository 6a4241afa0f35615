"""Make the index equal to what is on disk: diff -> rows -> vectors -> table -> derived -> manifest.

`sync` is the only way into the index, whoever asks. It compares by stat, then by content, embeds only
passages whose vector is not kept, and writes in batches. A *full pass* does all of it; a *quick pass*
(after a save) leaves out git and most derived tables, which take longer than the rest of a small change.

A kill after each step leaves this, and somebody repairs it (the lock goes with the process):

    step           on disk                  repaired by
    -------------  -----------------------  -------------------------------------------------------
    scan, read     nothing                  -
      |
    mark_dirty     dirty.json               the next sync: `manifest.load` calls the files in it
      |                                     unknown, so they are read again, or removed
    table.replace  rows that the manifest   the same: the rows of these files are written once more
      |            does not know of
      | .. and for each batch but the last one
      |  save      a manifest of this batch,  the next sync goes on with the files that are missing,
      |            with no `head`             and asks git about all of them
      |  mark_dirty                           as above
      |
    derived        tables newer or older    the next full pass: `manifest.load` calls all of them
      |            than the rows            stale as long as there is a dirty.json
    manifest.save  all of it                -  (dirty.json goes last: a kill before that repeats work)

A rebuild takes the same steps in the folder `building`, which nobody reads, and the next rebuild
resumes it. After its rename and before `current` names it, it is an index that nobody reads: the
next rebuild removes it. Readers stay at the version of the tables that they opened until the manifest
is another one.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from vault_index import files
from vault_index.errors import EmbedderError, IndexStateError
from vault_index.index import diff, rows
from vault_index.index.derived import DERIVED, Derived, Sources
from vault_index.index.diff import Diff, ReadFile
from vault_index.index.stats import Stats
from vault_index.lesson.parse import id_of
from vault_index.store import injections, manifest, ownership
from vault_index.store.manifest import FileEntry, Manifest
from vault_index.store.schema import LESSONS
from vault_index.store.sync import ASKED_FOR, DAMAGED, Source, batches
from vault_index.store.table import Table
from vault_index.vault import shown

if TYPE_CHECKING:
    from vault_index.vault import Vault

BATCH_PASSAGES = 512  # about six seconds of embedding between two commits

Progress = Callable[[int, int], None]  # (passages embedded, passages to embed)


@dataclass(frozen=True, slots=True)
class SyncOptions:
    """How a sync proceeds: see `sync`."""

    full: bool
    ask_git: bool
    read_all: bool
    use_cache: bool
    progress: Progress
    started: float  # monotonic


@dataclass(frozen=True, slots=True)
class _Work:
    """An index, what it was built from, and how the disk differs from that."""

    index: Path
    manifest: Manifest
    diff: Diff


@dataclass(frozen=True, slots=True)
class _Look:
    """The work to do on the index in force, or the reason why it has to be rebuilt."""

    index: Path | None = None
    version: files.Stamp | None = None
    work: _Work | None = None
    reason: str = ""


def sync(
    vault: Vault,
    *,
    rebuild: bool = False,
    at_most: int | None = None,
    wait: bool = True,
    full: bool = True,
    ask_git: bool = True,
    read_all: bool = False,
    progress: Progress = lambda _done, _all: None,
) -> Stats:
    """Bring the index up to date with the files, and return what was done.

    `rebuild` builds a new index beside the old one and swaps. `at_most` is for callers in a hurry:
    if more files than that differ nothing is done and `Stats.pending` counts them. Without `wait`,
    if another process is writing, nothing is done. Without `full` new lessons are found, but their
    scores are a little off, and proposals, documents and skills are of before, until a full pass.
    With `ask_git=False`, as in a pass that is not full, authors and dates of commits are filled in
    by the next sync that asks. `read_all` compares the content of every file, whatever its stat.

    Raises WriteError, EmbedderError, and IndexStateError for an index of a newer version.
    """
    options = SyncOptions(full, full and ask_git, read_all, True, progress, time.monotonic())
    look = _Look(reason=ASKED_FOR) if rebuild else _look(vault, options)
    if look.work and _is_up_to_date(vault, look.work, options):
        return _nothing_done(look.work, options)
    if at_most is not None and (look.work is None or len(look.work.diff) > at_most):
        return Stats(pending=len(look.work.diff if look.work else vault.files()[0]))
    with ownership.held(vault.index_dir, wait=wait) as is_free:
        if not is_free:
            return Stats(busy=True)
        if not rebuild and _source(vault).is_outdated(look.index, look.version):
            look = _look(vault, options)
        if look.work is None:
            return _rebuild(vault, look.reason, options)
        try:
            return _update(vault, look.work, options)
        except IndexStateError:
            return _rebuild(vault, DAMAGED, options)


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


# what is to be done


def _look(vault: Vault, options: SyncOptions) -> _Look:
    index = manifest.current(vault.index_dir)
    version = manifest.version(index) if index else None
    reason, known = _source(vault).why_rebuild(index)
    if index is None or known is None:
        return _Look(index, version, reason=reason)
    changes = diff.scan(vault, known, options.ask_git, read_all=options.read_all)
    return _Look(index, version, _Work(index, known, changes))


def _is_up_to_date(vault: Vault, work: _Work, options: SyncOptions) -> bool:
    return work.diff.is_empty(work.manifest) and not any(
        table.is_stale(vault, work.manifest) for table in _due(options)
    )


def _due(options: SyncOptions) -> list[Derived]:
    """Return the derived tables that this pass is to refresh."""
    return [table for table in DERIVED if options.full or table.is_quick]


def _nothing_done(work: _Work, options: SyncOptions) -> Stats:
    return Stats(
        unchanged=work.diff.unchanged,
        seconds=time.monotonic() - options.started,
        problems=diff.problems(work.manifest, work.diff.skipped),
    )


# an index brought up to date


def _update(vault: Vault, work: _Work, options: SyncOptions) -> Stats:
    """Do the whole of a sync on one index; the caller holds the lock."""
    index, before, changes = work.index, work.manifest, work.diff
    authors = diff.ask_git(vault, before, changes)
    read = diff.read(vault, before, changes, authors)
    injections.rename(vault.index_dir, _renamed(before, changes, read))
    sources = Sources(vault, Table(index, before.dimension), before, options.use_cache)
    after, embedded = _write_rows(sources, read, changes.removed, options)
    after = manifest.with_files(after, _entries(read), changes.removed)
    sources = replace(sources, manifest=replace(after, head=authors.head))
    stats = replace(_count(before, changes, read), embedded=embedded)
    after, stats = _refresh_derived(sources, stats, options)
    manifest.save(index, after, even_if_same=False)
    return replace(
        stats,
        problems=diff.problems(after, changes.skipped),
        seconds=time.monotonic() - options.started,
    )


def _write_rows(
    sources: Sources, read: Sequence[ReadFile], removed: Collection[str], options: SyncOptions
) -> tuple[Manifest, int]:
    """Embed what is new and write rows, a commit a batch; removed files go with the last.

    Return the manifest as the last batch but one left it, and the number of passages embedded.
    """
    table, after = sources.lessons, sources.manifest
    changed = [file for file in read if file.lessons is not None]
    if not changed and not removed:
        return after, 0
    manifest.mark_dirty(table.index, [file.path for file in changed] + list(removed))
    after = replace(after, head="", derived={})  # until all are in, git is to be asked about all
    cache = sources.cache(rows.RECIPE)
    hashes = {row["content_hash"] for file in changed for row in file.rows}
    known = table.vectors(sorted(hashes)) if table.dimension else {}
    known |= cache.get(hashes - known.keys()) if table.dimension else {}
    missing, embedded = len(hashes) - len(known), 0
    several = list(batches(changed, lambda file: len(file.rows), BATCH_PASSAGES)) or [[]]
    for number, batch in enumerate(several, start=1):
        batch_rows = [row for file in batch for row in file.rows]
        embedder = sources.vault.embedder
        if embedder is not None:
            by_hash = {row["content_hash"]: row for row in batch_rows}
            new = cache.make_missing(by_hash, known, partial(rows.embed, embedder))
            known |= new
            embedded += len(new)
            if new:
                options.progress(embedded, missing)
            batch_rows = [{**row, "vector": known[row["content_hash"]]} for row in batch_rows]
        is_last = number == len(several)
        paths = [file.path for file in batch] + (list(removed) if is_last else [])
        table.replace(batch_rows, table.differing(batch_rows, [*map(shown, paths)])[1])
        if not is_last:  # so that a kill does not lose this batch
            after = manifest.with_files(after, _entries(batch))
            manifest.save(table.index, after)
            later = [file.path for batch in several[number:] for file in batch]
            manifest.mark_dirty(table.index, later + list(removed))
    return after, embedded


def _refresh_derived(
    sources: Sources, stats: Stats, options: SyncOptions
) -> tuple[Manifest, Stats]:
    """Make the derived tables again that are stale and belong to this pass, one after another."""
    for table in _due(options):
        if not table.is_stale(sources.vault, sources.manifest):
            continue
        if not manifest.is_dirty(sources.lessons.index):
            manifest.mark_dirty(sources.lessons.index, [])
        with contextlib.suppress(EmbedderError):  # the lessons are in; the next sync tries again
            done = table.refresh(sources)
            sources = replace(sources, manifest=done.manifest)
            skills = stats.skills if done.skills is None else done.skills
            stats = replace(stats, refiled=stats.refiled + done.refiled, skills=skills)
    return sources.manifest, stats


def _entries(read: Sequence[ReadFile]) -> dict[str, FileEntry]:
    return {file.path: file.entry for file in read}


def _count(before: Manifest, changes: Diff, read: Sequence[ReadFile]) -> Stats:
    """Count files by what happened to them; a file that went and came with one content moved."""
    gone = Counter(before.files[path].hash for path in changes.removed)
    happened: Counter[str] = Counter()
    touched = {file.path: file.entry.hash for file in read if file.path in changes.touched}
    for path, content in touched.items():
        old = before.files.get(path)
        if old and old.hash:
            happened["unchanged" if content == old.hash else "changed"] += 1
        elif gone[content]:
            gone[content] -= 1
            happened["moved"] += 1
        else:
            happened["added"] += 1
    return Stats(
        added=happened["added"],
        changed=happened["changed"],
        moved=happened["moved"],
        removed=gone.total(),
        unchanged=changes.unchanged + happened["unchanged"],
    )


def _renamed(before: Manifest, changes: Diff, read: Sequence[ReadFile]) -> dict[str, str]:
    """Return the ids of files that went and came with one content, old to new."""
    gone = {before.files[path].hash: path for path in sorted(changes.removed)}
    came = {file.entry.hash: file.path for file in read if file.path not in before.files}
    return {id_of(gone[hash]): id_of(came[hash]) for hash in sorted(gone.keys() & came.keys())}


# an index built from nothing


def _rebuild(vault: Vault, reason: str, options: SyncOptions) -> Stats:
    """Build a new index beside the one in force, then swap. An interrupted build is resumed."""
    building = _source(vault).start_building(resume=reason != ASKED_FOR)
    known = manifest.load(building)
    work = _Work(building, known, diff.scan(vault, known, ask_git=True))
    use_cache = reason != ASKED_FOR
    options = replace(options, full=True, ask_git=True, read_all=False, use_cache=use_cache)
    stats = _update(vault, work, options)
    manifest.put_in_force(building)
    return replace(stats, rebuilt=reason)


def _source(vault: Vault) -> Source:
    return Source(vault, LESSONS, manifest.SCHEMA)
