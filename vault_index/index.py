"""Make the index equal to what is on disk: added, changed, moved, removed -> embed -> write.

`sync` is the only way into the index, whoever asks. It looks at stat, then at content, embeds
only passages whose text is not in the table yet, and writes in batches, each complete in itself: a
kill at any moment leaves an index that opens and answers, and the next sync goes on from there.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from vault_index import (
    catalog,
    classify,
    difference,
    files,
    injections,
    listing,
    manifest,
    ownership,
    rows,
    skills,
    store,
)
from vault_index.difference import Difference, ReadFile
from vault_index.embed.cache import VectorCache
from vault_index.errors import EmbedderError, IndexStateError
from vault_index.lesson import id_of
from vault_index.manifest import Manifest
from vault_index.stats import Stats
from vault_index.store import Store
from vault_index.vault import shown

if TYPE_CHECKING:
    from vault_index.vault import Vault

BATCH_PASSAGES = 512  # about six seconds of embedding between two commits
_BUILDING = "building"  # the folder of an index that is not whole yet

Progress = Callable[[int, int], None]  # (passages embedded, passages to embed)


@dataclass(frozen=True, slots=True)
class _How:
    """How a sync goes about it: see `sync`."""

    ask_git: bool
    settle: bool
    progress: Progress
    started: float  # monotonic
    use_cache: bool = True
    read_all: bool = False


def sync(
    vault: Vault,
    *,
    rebuild: bool = False,
    at_most: int | None = None,
    wait: bool = True,
    ask_git: bool = True,
    settle: bool = True,
    read_all: bool = False,
    progress: Progress = lambda _done, _all: None,
) -> Stats:
    """Bring the index up to date with the files, and tell what was done.

    `rebuild` builds a new index beside the old one and swaps. `at_most` is for callers in a hurry:
    if more files than that differ nothing is done and `Stats.pending` counts them. Without `wait`,
    if another process is writing, nothing is done. Without `ask_git` it stays open who wrote what
    is new, until a sync that asks. Without `settle` what is new is found, but its scores are a
    little off until a sync that settles: which costs more than all the rest of a small change.
    `read_all` compares the content of every file, whatever its stat says.

    Raises WriteError, EmbedderError, and IndexStateError for an index of a newer version.
    """
    started = time.monotonic()
    found: Difference | None = None
    index = manifest.current(vault.index_folder)
    stamp = manifest.stamp(index) if index else None
    reason, known = ("asked for", None) if rebuild else _why_rebuild(vault)
    if at_most is not None and reason:
        return Stats(pending=len(vault.files()[0]))
    if known is not None:
        found = difference.between(vault, known, ask_git, read_all=read_all)
        settled = (
            known.settled
            and bool(known.listing)
            and known.filing == listing.filing(vault)
            and not skills.differ(vault, known.skills)
        )
        if not found and found.head == known.head and (settled or not settle):
            stats = Stats(unchanged=found.unchanged, seconds=time.monotonic() - started)
            stats.problems = difference.problems(known, found.skipped)
            return stats
        if at_most is not None and len(found) > at_most:
            return Stats(pending=len(found))
    with _locked(vault, wait) as free:
        if not free:
            return Stats(busy=True)
        now = manifest.current(vault.index_folder)
        wrote = now is None or now != index or manifest.stamp(now) != stamp
        if not rebuild and (wrote or (now and manifest.is_announced(now))):
            (reason, known), found = _why_rebuild(vault), None  # somebody wrote meanwhile
        if known is not None:
            try:
                how = _How(ask_git, settle, progress, started, read_all=read_all)
                return _bring_up_to_date(vault, _current(vault), known, how, found)
            except IndexStateError:
                reason = "the index was damaged"
        # who asks for a rebuild distrusts what there is
        how = _How(True, True, progress, started, use_cache=reason != "asked for")
        return _build(vault, reason, how)


def tidy(vault: Vault) -> bool:
    """Clean old versions away. False if some are too young for it, or somebody is writing.

    Raises WriteError, IndexStateError.
    """
    with _locked(vault, wait=False) as free:
        if not free:
            return False
        index = _current(vault)
        tidied = Store(index, manifest.load(index).dimension).tidy()
        manifest.touch(index)  # readers leave the version they stand on
        return tidied


def _why_rebuild(vault: Vault) -> tuple[str, Manifest | None]:
    """Say why the index in force cannot be brought up to date; else give its manifest."""
    index = manifest.current(vault.index_folder)
    if index is None:
        return "first index", None
    try:
        known = manifest.load(index)
    except IndexStateError as error:
        if error.newer:
            raise
        return error.message, None
    if known.schema != manifest.SCHEMA:
        return f"the index had schema {known.schema}, now it is {manifest.SCHEMA}", None
    name = vault.embedder.name if vault.embedder else manifest.NO_EMBEDDER
    if known.embedder != name:
        return f"the index was built with {known.embedder}, now it is {name}", None
    whole = Store(index, known.dimension).exists()
    return ("", known) if whole else ("the index was damaged", None)


def _current(vault: Vault) -> Path:
    index = manifest.current(vault.index_folder)
    if index is None:
        raise IndexStateError("the index is gone", "run `lessons index`")
    return index


def _build(vault: Vault, reason: str, how: _How) -> Stats:
    """Build a new index beside the one in force, then swap. An interrupted build is gone on with."""
    building = vault.index_folder / _BUILDING
    embedder = vault.embedder
    name = embedder.name if embedder else manifest.NO_EMBEDDER
    begun = ownership.is_folder(building) and _can_resume(building, name)
    if not begun or reason == "asked for":
        ownership.remove_tree(building)
        dimension = embedder.dimension if embedder else 0
        with files.writing(building):
            building.mkdir()
        Store(building, dimension).create()
        manifest.save(building, Manifest(manifest.SCHEMA, name, dimension))
    stats = _bring_up_to_date(vault, building, manifest.load(building), how)
    with files.writing(building):
        index = _rename_to_a_free_name(building)
    manifest.make_current(vault.index_folder, index)
    stats.rebuilt = reason
    return stats


def _rename_to_a_free_name(building: Path) -> Path:
    """Rename a built index; another of the same second may have the name that comes first."""
    while True:
        try:
            return building.rename(building.with_name(_index_name()))
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise


def _index_name() -> str:
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{os.urandom(2).hex()}"


def _can_resume(building: Path, name: str) -> bool:
    try:
        begun = manifest.load(building)
    except IndexStateError:
        return False
    whole = Store(building, begun.dimension).exists()
    return whole and begun.schema == manifest.SCHEMA and begun.embedder == name


def _bring_up_to_date(
    vault: Vault, index: Path, known: Manifest, how: _How, found: Difference | None = None
) -> Stats:
    """Do the whole of a sync on one index folder; the caller holds the lock."""
    table = Store(index, known.dimension)
    if found is None:
        found = difference.between(vault, known, how.ask_git, read_all=how.read_all)
    files = difference.read(vault, known, found, how.ask_git)
    stats = _count(known, found, files)
    injections.rename(vault.index_folder, _renamed(known, found, files))
    new = {file.path for file in files} - set(known.files)
    _write(vault, table, index, known, files, found.removed, stats, how)
    wrote = bool(found.removed) or any(file.lessons is not None for file in files)
    if how.settle:
        wrote |= _settle(vault, table, known, stats, how)
    for file in files:
        known.files[file.path] = file.entry
    for path in found.removed:
        known.files.pop(path, None)
    known.head = "" if new and not how.ask_git else found.head  # "": ask of all of them
    if wrote or not known.listing:
        known.listing = listing.save(table, index)
    manifest.save(index, known, even_if_same=wrote)
    stats.problems = difference.problems(known, found.skipped)
    stats.seconds = time.monotonic() - how.started
    return stats


def _settle(vault: Vault, table: Store, known: Manifest, stats: Stats, how: _How) -> bool:
    """Do what a small change need not wait for: proposals, the catalog, the text index, the skills.

    Return whether a table was written.
    """
    filing = listing.filing(vault)
    unsettled = not known.settled or known.filing != filing
    if unsettled:
        stats.refiled = classify.refile(table, vault.config.keywords, vault.config.taxonomy)
        known.filing = filing
        table.settle()
        places = Store(table.index, known.dimension, store.CATALOG)
        try:
            catalog.refresh(table, places, vault.embedder, _cache(vault, known, "titles", how))
            known.settled = True
        except EmbedderError:  # the lessons are in; the next sync tries again
            known.settled = False
    if skills.differ(vault, known.skills):
        with contextlib.suppress(EmbedderError):
            cache = _cache(vault, known, rows.RECIPE, how)
            stats.skills = skills.sync(vault, table.index, known, vault.embedder, cache)
    return unsettled or stats.skills is not None


def _cache(vault: Vault, known: Manifest, recipe: str, how: _How) -> VectorCache:
    name = f"{known.embedder} {recipe}"
    return VectorCache(vault.config.home, name, known.dimension, trusted=how.use_cache)


def _write(
    vault: Vault,
    table: Store,
    index: Path,
    known: Manifest,
    files: list[ReadFile],
    removed: list[str],
    stats: Stats,
    how: _How,
) -> None:
    """Embed what is new and write rows, a commit a batch; removed files go with the last."""
    changed = [file for file in files if file.lessons is not None]
    if not changed and not removed:
        return
    manifest.announce(index, [file.path for file in changed] + removed)
    known.settled, known.listing = False, ""
    hashes = {row["content_hash"] for file in changed for row in file.rows}
    vectors = table.vectors(sorted(hashes)) if table.dimension else {}
    cache = _cache(vault, known, rows.RECIPE, how)
    if table.dimension:
        vectors |= cache.get(hashes - set(vectors))
    missing = len(hashes - set(vectors)) if table.dimension else 0
    batches = list(_batches(changed)) or [[]]
    for number, batch in enumerate(batches, start=1):
        last = number == len(batches)
        new = {row["content_hash"]: row for file in batch for row in file.rows}
        new = {key: row for key, row in new.items() if key not in vectors}
        if table.dimension and vault.embedder and new:
            embedded = rows.embed(vault.embedder, list(new.values()))
            vectors.update(zip(new, embedded, strict=True))
            cache.put({key: vectors[key] for key in new})
            stats.embedded += len(new)
            how.progress(stats.embedded, missing)
        for row in (row for file in batch for row in file.rows if table.dimension):
            row["vector"] = vectors[row["content_hash"]]
        paths = [file.path for file in batch] + (removed if last else [])
        table.replace_paths([row for file in batch for row in file.rows], map(shown, paths))
        if not last:  # so that a kill does not lose this batch
            known.files.update({file.path: file.entry for file in batch})
            manifest.save(index, known)
            after = [file.path for later in batches[number:] for file in later]
            manifest.announce(index, after + removed)


def _batches(files: list[ReadFile]) -> Iterator[list[ReadFile]]:
    batch: list[ReadFile] = []
    size = 0
    for file in files:
        batch.append(file)
        size += len(file.rows)
        if size >= BATCH_PASSAGES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _count(known: Manifest, found: Difference, files: list[ReadFile]) -> Stats:
    """Count files by what happened to them; a file that went and came with one content moved."""
    gone = [known.files[path].hash for path in found.removed]
    stats = Stats(removed=len(gone), unchanged=found.unchanged)
    touched = {file.path for file in found.touched}
    for file in files:
        if file.path not in touched:
            continue
        if file.path in known.files and known.files[file.path].hash:
            same = file.entry.hash == known.files[file.path].hash
            stats.unchanged += same
            stats.changed += not same
        elif file.entry.hash in gone:
            gone.remove(file.entry.hash)
            stats.moved += 1
            stats.removed -= 1
        else:
            stats.added += 1
    return stats


def _renamed(known: Manifest, found: Difference, files: list[ReadFile]) -> dict[str, str]:
    """Return the ids of files that went and came with one content, old to new."""
    gone = {known.files[path].hash: path for path in found.removed}
    came = {file.entry.hash: file.path for file in files if file.path not in known.files}
    return {id_of(gone[hash]): id_of(came[hash]) for hash in sorted(gone.keys() & came.keys())}


@contextlib.contextmanager
def _locked(vault: Vault, wait: bool) -> Iterator[bool]:
    """Hold the one writer's lock of a vault's index; yields False if another has it."""
    folder = vault.index_folder
    with files.writing(folder):
        ownership.claim(folder)
        lock = ownership.open_file(folder / "lock", os.O_RDWR | os.O_CREAT)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            free = True
        except BlockingIOError:
            free = False
        yield free
    finally:
        os.close(lock)
