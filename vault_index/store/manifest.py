"""The manifest of an index, and which index of a vault is the current one.

    .vault_index/
      current          the name of the folder in force; replaced with one rename
      20261120-...-a/  an index: the LanceDB tables and
        manifest.json    what they were made from
        dirty.json       a write-ahead mark: the files whose rows may be newer than the manifest
      lock             one writer at a time
      owner            whose it is: see `ownership`

A reader follows `current` once and then stays with one folder, so it never sees half an index. The
manifest names the schema, the embedder and each file's hash, size, times and inode. `sync` draws
what a killed writer leaves, and who repairs it.
"""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from json.encoder import encode_basestring_ascii as quoted
from operator import attrgetter
from pathlib import Path
from typing import Any

from vault_index import files
from vault_index.errors import IndexStateError
from vault_index.hotpath import clock, index_files
from vault_index.store import ownership
from vault_index.store.filters import UNCHECKED

SCHEMA = 15  # raise it when rows, what is embedded or the rules of `check` change: it is rebuilt
KEEP_OLD_SECONDS = 600  # a reader may still use the index before this one

NO_EMBEDDER = "none"
# Where more of the files lack vectors, words alone are searched: what has none scores by its words only,
# so the others would come before it.
MAY_LACK = 0.1

BUILDING = "building"  # the folder of an index that is not whole yet
REBUILDING = "rebuilding"  # the same, while others write the one in force
_OVERTAKEN = "?"  # as the hash of a file that a killed writer may have written
UNKNOWN = ("", _OVERTAKEN)
_FILE = "manifest.json"
_DIRTY = "dirty.json"


@dataclass(slots=True)  # replaced and never changed, but frozen it takes twice as long to load
class FileEntry:
    """The entry of one file in an index. `problem` is why its last good rows are kept."""

    hash: str
    stamp: list[int]  # as of `files.stamp_of`; empty: not to be trusted, so look again
    lessons: int = 0
    declared: str = ""  # the frontmatter `id`
    owns_id: bool = True  # False: another file declares the same id, so the path is this one's
    author: str = ""  # of the last commit; "" before the first
    first: str = ""  # ISO dates of the first and last commit
    last: str = ""
    problem: str = ""
    line: int = 0
    withheld: str = ""  # why hooks leave out the rows: an error in the text that they are from
    held: str = ""  # the hash to release that would end it
    lacks: bool = False  # vectors: the embedder did not answer, so rows are found by words alone
    written: str = field(default="", init=False, repr=False, compare=False)  # its JSON, once saved


# a value that most files have is not written: half of the time to load it
_KEYS = [column.name for column in fields(FileEntry) if column.init]
_DEFAULTS = [column.default for column in fields(FileEntry) if column.init]
_VALUES = attrgetter(*_KEYS)


@dataclass(frozen=True, slots=True)
class ReadFile:
    """A file as it was just read. `rows` are None where the table's rows stay."""

    path: str
    entry: FileEntry
    rows: Sequence[Mapping[str, Any]] | None = None
    contents: Mapping[str, Any] = field(default_factory=dict)  # what is embedded, by content hash


@dataclass(frozen=True, slots=True)
class Problem:
    """A file that could not be indexed as it is on disk, and why. `line` is 0 for the whole file."""

    path: str
    line: int
    message: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """The sources that an index was built from."""

    schema: int
    embedder: str  # a name such as "minilm-l6-v2-int8"; "none" for full text only
    dimension: int
    setting: str = ""  # of the embedder, when it was built: the embedder may have been away
    head: str = ""  # the commit whose authors and dates the rows have; "": ask git about all files
    derived: Mapping[str, str] = field(default_factory=dict)  # the fresh ones: see `index.derived`
    skills: Mapping[str, list[int]] = field(default_factory=dict)  # SKILL.md -> its stamp
    skills_hash: str = ""  # of all of their content
    files: Mapping[str, FileEntry] = field(default_factory=dict)  # by path below the vault's folder


def current(folder: Path) -> Path | None:
    """Return the index folder in force below `.vault_index`; None before the first one is whole.

    An index that is not ours does not count. Raises UnreadableError where the disk does not say.
    """
    if not ownership.is_ours(folder):
        return None
    try:
        name = ownership.read_text(folder / index_files.POINTER).strip()
    except UnicodeDecodeError:
        return None
    except OSError as error:
        if index_files.is_missing(error):
            return None
        raise ownership.unreadable_index(folder / index_files.POINTER, error) from None
    whole = ownership.INDEX_NAME.fullmatch(name) and ownership.is_folder(folder / name)
    return folder / name if whole else None


# the last one, as it is on disk: to read a manifest of 100,000 files takes half a second
_latest: tuple[tuple[Path, files.Stamp], Manifest] | None = None


def load(index: Path, newest: int = SCHEMA) -> Manifest:
    """Read an index's manifest. `newest` is the schema that this version writes.

    Raises IndexStateError if it is missing or damaged, or says that a newer version wrote it, and
    UnreadableError where the disk does not say.
    """
    global _latest
    # looked at first: a newer file is read once more
    key, latest = (index, version(index)), _latest
    try:
        if latest is None or latest[0] != key or latest[1].schema != newest:
            raw = json.loads(ownership.read_text(index / _FILE))
            schema = int(raw["schema"])
            if schema > newest:
                raise IndexStateError(
                    "the index was written by a newer version"
                    f" (schema {schema}, this one knows {newest})",
                    "upgrade this installation, or run `lessons index --rebuild`",
                    newer=True,
                )
            if schema < newest:
                return Manifest(schema, "", 0)
            files = {path: FileEntry(**entry) for path, entry in raw.pop("files").items()}
            _latest = latest = key, Manifest(files=files, **raw)
        return _restore_dirty(index, latest[1])
    except OSError as error:
        if not index_files.is_missing(error):
            raise ownership.unreadable_index(index / _FILE, error) from None
        raise IndexStateError(
            f"the index has no readable manifest: {error.strerror}", _REBUILD
        ) from None
    except (ValueError, TypeError, KeyError, AttributeError):
        raise IndexStateError("the index's manifest is damaged", _REBUILD) from None


def waiting(manifest: Manifest) -> list[str]:
    """List the files that wait for vectors, by path."""
    entries = manifest.files.items()
    return [path for path, entry in entries if entry.lacks and entry.hash not in UNKNOWN]


def unchecked(manifest: Manifest) -> list[str]:
    """List the files that are still to be checked for what agents must not get, by path."""
    entries = manifest.files.items()
    return [
        path
        for path, entry in entries
        if entry.withheld == UNCHECKED and entry.hash not in UNKNOWN and not entry.problem
    ]


def unmade(lacking: int, total: int, what: str) -> str:
    """Return the reason to search by words alone while many files or sessions lack vectors, or ""."""
    if lacking <= MAY_LACK * total:
        return ""
    return f"the vectors of {lacking:,} of {total:,} {what} are still to be made"


def version(index: Path) -> files.Stamp:
    """Return the stamp of a manifest, new after each write; zeros if it is not there.

    Two changes may fall into one tick of the clock, but each is a new file.
    """
    return files.stamp(index / _FILE) or (0, 0, 0, 0)


def in_force(index: Path) -> object:
    """Return a stamp, new where another index is in force, this one was written, or its owner changed."""
    folder = f"{index.parent}"  # a prompt asks this ten times, and joining paths is most of it
    names = (f"{folder}/{index_files.POINTER}", f"{folder}/{index_files.OWNER}", f"{index}/{_FILE}")
    return [files.stamp(name) for name in names]


def written(index: Path) -> float:
    """Return the time at which a manifest was last written, in seconds; 0 if it is not there."""
    return version(index)[1] / 1e9


_REBUILD = "run `lessons index --rebuild`"


def save(index: Path, manifest: Manifest, *, even_if_same: bool = True) -> None:
    """Write an index's manifest in one rename, which makes readers open the tables again.

    Without `even_if_same`, only if it says something new. The dirty mark goes. Raises WriteError.
    """
    global _latest
    values = {column.name: getattr(manifest, column.name) for column in fields(manifest)}
    entries = values.pop("files").items()
    listed = ",".join(f"{quoted(path)}:{entry.written or _write(entry)}" for path, entry in entries)
    data = f'{json.dumps(values, separators=(",", ":"))[:-1]},"files":{{{listed}}}}}'.encode()
    with files.writing(index):
        if (
            even_if_same
            or is_dirty(index)
            or files.read_if_any(index / _FILE, len(data) + 1) != data
        ):
            files.replace_file(index / _FILE, data)
            _latest = (index, version(index)), manifest
        (index / _DIRTY).unlink(missing_ok=True)


def _write(entry: FileEntry) -> str:
    """Return an entry as JSON, and keep that: to make it for 100,000 files takes half a second."""
    triples = zip(
        _KEYS, _VALUES(entry), _DEFAULTS, strict=True
    )  # asdict() takes five times as long
    values = {key: value for key, value, default in triples if value != default}
    entry.written = json.dumps(values, separators=(",", ":"))
    return entry.written


def with_files(
    manifest: Manifest, entries: Mapping[str, FileEntry], removed: Collection[str] = ()
) -> Manifest:
    """Return a manifest with other entries for some files, and without those removed."""
    removed_paths = set(removed)
    files = {path: entry for path, entry in manifest.files.items() if path not in removed_paths}
    return replace(manifest, files={**files, **entries})


def touch(index: Path) -> None:
    """Make readers open the tables again. Raises WriteError."""
    with files.writing(index):
        os.utime(index / _FILE)


def mark_dirty(index: Path, paths: Iterable[str]) -> None:
    """Note which files' rows are about to change, until the next `save`. Raises WriteError.

    If the process dies in between, `load` treats these files as unknown, so the next sync reads or
    removes them, and derived tables as stale. Without the mark a lesson that was deleted, or put
    back as it was, before the next sync would keep the rows of the sync that was killed.
    """
    files.replace_file(index / _DIRTY, json.dumps(sorted(paths)).encode())


def is_dirty(index: Path) -> bool:
    """Whether tables may be newer than the manifest: somebody is writing, or was killed."""
    return (index / _DIRTY).exists()


def _restore_dirty(index: Path, manifest: Manifest) -> Manifest:
    """Return a manifest without what a writer that has not saved it may have overtaken."""
    try:
        paths = [str(path) for path in json.loads(ownership.read_text(index / _DIRTY))]
    except FileNotFoundError:
        return manifest
    unknown = {
        path: replace(before, hash=_OVERTAKEN, stamp=[], lacks=True)
        if (before := manifest.files.get(path))
        else FileEntry("", [], lacks=True)
        for path in paths
    }
    return replace(manifest, files={**manifest.files, **unknown}, derived={}, skills_hash="")


def put_in_force(building: Path, *, keep_seconds: float = KEEP_OLD_SECONDS) -> None:
    """Put a built index in force with one rename, and remove indexes that no reader can still use.

    Raises WriteError.
    """
    folder = building.parent
    with files.writing(folder):
        index = _rename_to_a_free_name(building)
        files.replace_file(folder / index_files.POINTER, index.name.encode())
        for other in folder.iterdir():
            is_old = other != index and ownership.INDEX_NAME.fullmatch(other.name)
            if is_old and not clock.is_near(written(other), keep_seconds):
                ownership.remove_tree(other)


def _rename_to_a_free_name(building: Path) -> Path:
    """Rename a built index; another of the same second may have the name that comes first."""
    while True:
        name = f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{os.urandom(2).hex()}"
        try:
            return building.rename(building.with_name(name))
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise


def remove_all(folder: Path) -> None:
    """Remove every index in a `.vault_index`, also the current one and an unfinished one."""
    with files.writing(folder):
        (folder / index_files.POINTER).unlink(missing_ok=True)
        for index in folder.iterdir():
            if index.name in (BUILDING, REBUILDING) or ownership.INDEX_NAME.fullmatch(index.name):
                ownership.remove_tree(index)
