"""The manifest of an index, and which index of a vault is the current one.

    .vault_index/
      current          the name of the folder in force; replaced with one rename
      20261120-...-a/  an index: the LanceDB tables and its manifest.json
      lock             one writer at a time
      owner            whose it is: see `ownership`

A reader follows `current` once and then stands on one folder, so it never sees half an index. The
manifest names the schema, the embedder and each file's hash, size, times and inode.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

from vault_index import files, ownership
from vault_index.errors import IndexStateError

SCHEMA = 5  # raise it when rows, what is embedded or the rules of `check` change: it is rebuilt
KEEP_OLD_SECONDS = 600  # a reader may still stand on the index before this one

NO_EMBEDDER = "none"

_POINTER = "current"
_FILE = "manifest.json"
_ANNOUNCED = "announced.json"


@dataclass(slots=True)
class FileEntry:
    """What the index holds of one file. `problem` is why its last good rows stand instead."""

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

    def differs(self, other: FileEntry) -> bool:
        """Tell whether git says something else of the file."""
        mine = (self.author, self.first, self.last)
        return mine != (other.author, other.first, other.last)


# what is as it is for most files is not written: half of the time to load it
_DEFAULTS = {one.name: one.default for one in fields(FileEntry)}


@dataclass(slots=True)
class Manifest:
    """What an index was built from."""

    schema: int
    embedder: str  # a name such as "minilm-l6-v2-int8"; "none" for full text only
    dimension: int
    head: str = ""  # the commit whose history the rows tell
    settled: bool = True  # whether full text counts the words of old and new rows together
    filing: str = ""  # the hash of the settings that the classifier goes by
    listing: str = ""  # the mark of the listing that says the same as the rows; "" for none
    skills: dict[str, list[int]] = field(default_factory=dict)  # SKILL.md -> its stamp
    skills_hash: str = ""  # of all of their content
    files: dict[str, FileEntry] = field(default_factory=dict)  # by path below the vault's folder


def current(folder: Path) -> Path | None:
    """Return the index folder in force below `.vault_index`; None before the first one is whole.

    What is not ours is none.
    """
    if not ownership.is_ours(folder):
        return None
    try:
        name = ownership.read_text(folder / _POINTER).strip()
    except (OSError, UnicodeDecodeError):
        return None
    whole = ownership.INDEX_NAME.fullmatch(name) and ownership.is_folder(folder / name)
    return folder / name if whole else None


def load(index: Path) -> Manifest:
    """Read an index's manifest.

    Raises IndexStateError if it is missing or damaged, or says that a newer version wrote it.
    """
    try:
        raw = json.loads(ownership.read_text(index / _FILE))
        schema = int(raw["schema"])
        if schema > SCHEMA:
            raise IndexStateError(
                f"the index was written by a newer version (schema {schema}, this one knows {SCHEMA})",
                "upgrade this installation, or run `lessons index --rebuild`",
                newer=True,
            )
        if schema < SCHEMA:
            return Manifest(schema, "", 0)
        files = {path: FileEntry(**entry) for path, entry in raw.pop("files").items()}
        manifest = Manifest(files=files, **raw)
        _recall_announced(index, manifest)
        return manifest
    except OSError as error:
        raise IndexStateError(
            f"the index has no readable manifest: {error.strerror}", _REBUILD
        ) from None
    except IndexStateError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError):
        raise IndexStateError("the index's manifest is damaged", _REBUILD) from None


def stamp(index: Path) -> files.Stamp:
    """Return the stamp of a manifest; zeros if it is not there.

    Two changes may fall into one tick of the clock, but each is a new file.
    """
    try:
        return files.stamp_of((index / _FILE).lstat())
    except OSError:
        return 0, 0, 0, 0


def written(index: Path) -> float:
    """Return when a manifest was last written, in seconds; 0 if it is not there."""
    return stamp(index)[1] / 1e9


_REBUILD = "run `lessons index --rebuild`"


def save(index: Path, manifest: Manifest, *, even_if_same: bool = True) -> None:
    """Write an index's manifest in one rename, which has readers open the tables again.

    Without `even_if_same`, only if it says something new. Raises WriteError.
    """
    values = {one.name: getattr(manifest, one.name) for one in fields(manifest)}
    values["files"] = {
        path: {
            key: value
            for key, default in _DEFAULTS.items()
            if (value := getattr(entry, key)) != default  # asdict() takes five times as long
        }
        for path, entry in manifest.files.items()
    }
    data = json.dumps(values, separators=(",", ":")).encode()
    with files.writing(index):
        if even_if_same or is_announced(index) or not _is_there(index / _FILE, data):
            files.replace_file(index / _FILE, data)
        (index / _ANNOUNCED).unlink(missing_ok=True)


def _is_there(file: Path, data: bytes) -> bool:
    """Whether a file holds this already."""
    try:
        return file.read_bytes() == data
    except OSError:
        return False


def touch(index: Path) -> None:
    """Have readers open the table anew. Raises WriteError."""
    with files.writing(index):
        os.utime(index / _FILE)


def announce(index: Path, paths: Iterable[str]) -> None:
    """Note which files' rows are about to change, until the next `save`. Raises WriteError.

    After a kill in between, `load` gives them as not known, so that they are read again or removed.
    Without it a lesson that was deleted, or put back as it was, before the next sync would keep the
    rows of the sync that was killed.
    """
    with files.writing(index):
        files.replace_file(index / _ANNOUNCED, json.dumps(sorted(paths)).encode())


def is_announced(index: Path) -> bool:
    """Tell whether rows were announced and not saved: somebody is writing, or was killed."""
    return (index / _ANNOUNCED).exists()


def _recall_announced(index: Path, manifest: Manifest) -> None:
    try:
        paths = [str(path) for path in json.loads(ownership.read_text(index / _ANNOUNCED))]
    except FileNotFoundError:
        return
    for path in paths:
        before = manifest.files.get(path)
        manifest.files[path] = replace(before, hash="?", stamp=[]) if before else FileEntry("", [])
    manifest.settled = False


def make_current(folder: Path, index: Path) -> None:
    """Put an index in force, in one rename, and remove those that nobody can stand on any more."""
    with files.writing(folder):
        files.replace_file(folder / _POINTER, index.name.encode())
        now = time.time()
        for other in folder.iterdir():
            if other == index or not ownership.INDEX_NAME.fullmatch(other.name):
                continue
            if now - written(other) > KEEP_OLD_SECONDS:
                ownership.remove_tree(other)
