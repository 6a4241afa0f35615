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

from vault_index import git, lesson, manifest, rows
from vault_index import vault as vaults
from vault_index.errors import IndexStateError, LessonError
from vault_index.lesson import Lesson
from vault_index.manifest import FileEntry, Manifest
from vault_index.store import Row, Store

if TYPE_CHECKING:
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


@dataclass(frozen=True, slots=True)
class _Difference:
    """What the disk has and the manifest has not."""

    touched: list[SourceFile]  # new, or of another size or mtime
    removed: list[str]
    unchanged: int
    skipped: list[Skipped]
    head: str  # the commit now checked out

    def __len__(self) -> int:
        return len(self.touched) + len(self.removed)


@dataclass(slots=True)
class _File:
    """A file as it was just read. `lessons` is None when its rows stay as they are."""

    path: str
    entry: FileEntry
    lessons: list[Lesson] | None = None
    rows: list[Row] = field(default_factory=list)


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
            stats = Stats(unchanged=difference.unchanged, seconds=time.monotonic() - started)
            stats.problems = _problems(known, difference.skipped)
            return stats
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
    files = _read(vault, known, difference, ask_git)
    stats = _count(known, difference, files)
    _write(vault, store, index, known, files, difference.removed, stats, progress)
    for file in files:
        known.files[file.path] = file.entry
    for path in difference.removed:
        known.files.pop(path, None)
    known.head = difference.head
    manifest.save(index, known)
    stats.problems = _problems(known, difference.skipped)
    stats.seconds = time.monotonic() - started
    return stats


def _write(
    vault: Vault,
    store: Store,
    index: Path,
    known: Manifest,
    files: list[_File],
    removed: list[str],
    stats: Stats,
    progress: Progress,
) -> None:
    """Embed what is new and write rows, a commit a batch; removed files go with the last."""
    changed = [file for file in files if file.lessons is not None]
    if not changed and not removed:
        return
    _announce(index, known, [file.path for file in changed] + removed)
    for file in changed:
        provenance = git.Provenance(file.entry.author, file.entry.first, file.entry.last)
        for one in file.lessons or []:
            file.rows += rows.of_lesson(one, shown(file.path), provenance)
    hashes = {row["content_hash"] for file in changed for row in file.rows}
    vectors = store.vectors(sorted(hashes)) if store.dimension else {}
    missing = len(hashes - set(vectors)) if store.dimension else 0
    batches = list(_batches(changed)) or [[]]
    for number, batch in enumerate(batches, start=1):
        last = number == len(batches)
        new = {row["content_hash"]: row for file in batch for row in file.rows}
        new = {key: row for key, row in new.items() if key not in vectors}
        if store.dimension and vault.embedder and new:
            vectors.update(zip(new, rows.embed(vault.embedder, list(new.values())), strict=True))
            stats.embedded += len(new)
            progress(stats.embedded, missing)
        for row in (row for file in batch for row in file.rows if store.dimension):
            row["vector"] = vectors[row["content_hash"]]
        paths = [file.path for file in batch] + (removed if last else [])
        store.replace_paths([row for file in batch for row in file.rows], map(shown, paths))
        if not last:  # so that a kill does not lose this batch
            known.files.update({file.path: file.entry for file in batch})
            manifest.save(index, known)
    store.settle()


def _announce(index: Path, known: Manifest, paths: list[str]) -> None:
    """Note which files' rows are about to change: after a kill they are read again or removed.

    Without it a lesson that was deleted, or put back as it was, before the next sync would keep
    the rows of the sync that was killed.
    """
    for path in paths:
        before = known.files.get(path)
        intent = replace(before, hash="?", mtime_ns=0) if before else FileEntry("", 0, 0)
        known.files[path] = intent
    manifest.save(index, known)


def _batches(files: list[_File]) -> Iterator[list[_File]]:
    batch: list[_File] = []
    size = 0
    for file in files:
        batch.append(file)
        size += len(file.rows)
        if size >= BATCH_PASSAGES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def shown(path: str) -> str:
    """Give a file's path as people see it, from the vault's root: `lessons/devops/heap.md`."""
    return f"{vaults.FOLDER}/{path}"


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
    closed = [skip.path.rstrip("/") for skip in skipped if skip.is_folder]
    hidden = tuple("" if path == "." else f"{path}/" for path in closed)
    there = {file.path for file in files}
    removed = [path for path in known.files if path not in there and not path.startswith(hidden)]
    head = (git.head(vault.root) or "") if ask_git else known.head
    return _Difference(touched, removed, len(files) - len(touched), skipped, head)


def _read(
    vault: Vault, known: Manifest, difference: _Difference, ask_git: bool
) -> list[_File]:
    """Read every file whose rows may have to change."""
    authored = _authored(vault, known, difference) if ask_git else {}
    stats = {file.path: file for file in vault.files()[0]} if authored else {}
    pending = {file.path: file for file in difference.touched}
    pending |= {path: stats[path] for path in authored if path in stats}
    read = {path: _read_file(vault, pending[path], known, authored.get(path)) for path in pending}
    owners = _owners(known, list(read.values()), difference.removed)
    for path, entry in known.files.items():  # those whose id another file took or set free
        taken_or_freed = entry.declared and (owners.get(entry.declared) == path) != entry.owns_id
        same = path not in read or read[path].lessons is None
        if taken_or_freed and same and path not in difference.removed:
            source = pending.get(path) or vaults.SourceFile(path, entry.size, entry.mtime_ns)
            read[path] = _read_file(vault, source, known, authored.get(path), even_if_same=True)
    return [_with_own_ids(read[path], owners) for path in sorted(read)]


def _read_file(
    vault: Vault,
    source: SourceFile,
    known: Manifest,
    provenance: git.Provenance | None,
    even_if_same: bool = False,
) -> _File:
    """Read and parse one file; what is wrong with it goes into its manifest entry."""
    before = known.files.get(source.path)
    racy = time.time_ns() - source.mtime_ns < RACY_NS
    entry = replace(before) if before else FileEntry("", 0, 0)
    entry.size, entry.mtime_ns = source.size, 0 if racy else source.mtime_ns
    if provenance:
        entry.author, entry.last = provenance.author, provenance.last
        entry.first = provenance.first
    try:
        data = (vault.folder / source.path).read_bytes()
        content = lesson.hash_of(data.decode("latin-1"))
        if before and before.hash == content and not even_if_same and not before.differs(entry):
            return _File(source.path, entry)
        entry.hash = content
        parsed = lesson.parse_file(data, source.path)
    except LessonError as error:
        entry.problem, entry.line = error.message, error.line
        return _File(source.path, entry)
    except OSError as error:
        entry.problem, entry.line = f"{source.path}: cannot be read: {error.strerror}", 0
        return _File(source.path, entry)
    entry.problem, entry.line = "", 0
    entry.declared = parsed[0].declared if parsed else ""
    entry.lessons = len(parsed)
    return _File(source.path, entry, parsed)


def _owners(known: Manifest, read: list[_File], removed: list[str]) -> dict[str, str]:
    """Tell which file owns each declared id: the first by path, and never an id that is a path."""
    entries = {path: entry for path, entry in known.files.items() if path not in removed}
    entries |= {file.path: file.entry for file in read}
    taken = {path.removesuffix(".md") for path in entries}
    owners: dict[str, str] = {}
    for path in sorted(entries):
        declared = entries[path].declared
        if declared and (declared not in taken or declared == path.removesuffix(".md")):
            owners.setdefault(declared, path)
    return owners


def _with_own_ids(file: _File, owners: dict[str, str]) -> _File:
    """Give a file that declares another's id its path as id, and note it as a problem."""
    declared = file.entry.declared
    if not declared or file.lessons is None:
        return file
    file.entry.owns_id = owners.get(declared) == file.path
    if not file.entry.owns_id:
        other = owners.get(declared, f"{declared}.md")
        file.entry.problem = f"{file.path}: the id {declared!r} is taken by {other}"
        base = file.path.removesuffix(".md")
        file.lessons = [replace(one, id=base + one.id[len(declared) :]) for one in file.lessons]
    return file


def _authored(vault: Vault, known: Manifest, difference: _Difference) -> dict[str, git.Provenance]:
    """Ask git who wrote what since the manifest's commit; all of it when that is not enough.

    Gives the files of which git says something else than the manifest.
    """
    came = any(file.path not in known.files for file in difference.touched)  # perhaps back
    if not came and difference.head == known.head:
        return {}
    since = "" if came else known.head
    found = git.history(vault.folder, since) if since else None
    if found is not None and all(path in known.files for path in found):
        firsts = {path: known.files[path].first for path in found}
        if all(firsts.values()):
            return {path: replace(new, first=firsts[path]) for path, new in found.items()}
    nobody = git.Provenance("", "", "")  # of a file whose commits were taken back
    told = dict.fromkeys(known.files, nobody) | (git.history(vault.folder) or {})
    return {
        path: new
        for path, new in told.items()
        if (entry := known.files.get(path)) is None
        or (entry.author, entry.first, entry.last) != (new.author, new.first, new.last)
    }


def _count(known: Manifest, difference: _Difference, files: list[_File]) -> Stats:
    """Count files by what happened to them; a file that went and came with one content moved."""
    gone = [known.files[path].hash for path in difference.removed]
    stats = Stats(removed=len(gone), unchanged=difference.unchanged)
    touched = {file.path for file in difference.touched}
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


def _problems(known: Manifest, skipped: list[Skipped]) -> list[Problem]:
    """List what is not in the index as it stands on disk, by path."""
    found = [
        Problem(shown(path), entry.line, entry.problem.removeprefix(f"{path}: "))
        for path, entry in known.files.items()
        if entry.problem
    ]
    found += [Problem(shown(skip.path), 0, skip.reason) for skip in skipped]
    return sorted(found, key=lambda problem: (problem.path, problem.line))


@contextmanager
def _locked(vault: Vault, wait: bool) -> Iterator[bool]:
    """Hold the one writer's lock of a vault's index; yields False if another has it."""
    import filelock

    folder = vault.index_folder
    with manifest.writing(folder):
        folder.mkdir(mode=0o700, exist_ok=True)
        ignore = folder / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n")
        lock = filelock.FileLock(folder / "lock")
        try:
            lock.acquire(timeout=-1 if wait else 0)
        except filelock.Timeout:
            pass
    try:
        yield lock.is_locked
    finally:
        lock.release()
