"""The lessons as their files are now, read without a table: what `list`, `show` and `categories` need.

`listing.json`, beside the manifest, holds what the table says of each lesson but its text. The
manifest names the listing that belongs to it, so the two are never of different times. A file whose
stamp is not that of the manifest is read again, by the same functions as in a sync, and the answer
is the one that the table would give after it. Nothing is written here but by `save`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vault_index import difference, files, locate, manifest, ownership
from vault_index.errors import IndexStateError
from vault_index.lesson import hash_of
from vault_index.manifest import Manifest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from vault_index.stats import Problem
    from vault_index.store import Store
    from vault_index.vault import Vault

COLUMNS = (
    *("id", "lesson_id", "path", "title", "document", "categories", "filed_by", "tags", "type"),
    *("confidence", "created_at", "updated_at", "author", "link", "withheld"),
)
MANY = 50  # files: reading them for secrets and the like takes as long as a sync

_FILE = "listing.json"
_WHOLE = "@0"  # the end of the id of a row that is the whole of its lesson
_KEPT = tuple(name for name in COLUMNS if name not in ("id", "path"))
_SHOWN = ("id", "path", *_KEPT[1:])  # the order of what `get.entries` has of a table
_DATES = ("created_at", "updated_at")
_UNFILED = ("classifier", "nobody")


@dataclass(slots=True)
class Listing:
    """The lessons, sorted by id, as `get.Entry` has them without text, and what is wrong with files.

    `is_proposed_anew` is true where the classifier may propose otherwise after the next sync.
    """

    lessons: list[dict[str, Any]]
    problems: list[Problem]
    is_proposed_anew: bool = False
    hashes: Mapping[str, str] = field(
        default_factory=dict
    )  # of files, by path in the vault's folder
    broken: frozenset[str] = frozenset()  # files that have a problem: they may not parse
    unchecked: frozenset[str] = frozenset()  # files whose `withheld` was not asked for

    def is_filed(self, lessons: Iterable[Mapping[str, Any]]) -> bool:
        """Whether the categories of some lessons are those that the table would give."""
        return not self.is_proposed_anew or all(one["filed_by"] not in _UNFILED for one in lessons)


def save(table: Store, index: Path) -> str:
    """Write what a table says of each lesson, and return the mark for the manifest. Raises WriteError."""
    found: dict[str, list[list[Any]]] = {}
    for row in table.rows(COLUMNS):
        if row["id"].endswith(_WHOLE):
            found.setdefault(_below(row["path"]), []).append(_values(row))
    data = json.dumps({path: sorted(found[path]) for path in sorted(found)}, separators=(",", ":"))
    mark = hash_of(data)
    with files.writing(index):
        files.replace_file(index / _FILE, f'{{"mark":"{mark}","files":{data}}}'.encode())
    return mark


def now(vault: Vault, *, ask_git: bool = True, withheld: bool = True) -> Listing | None:
    """Read the lessons as the files are; None where only a sync can tell.

    Without `ask_git` authors may be those of before, and there are no dates; without `withheld` what
    hooks leave out may be that of before: see `Listing.unchecked`. Raises IndexStateError for an
    index of a newer version, ForeignIndexError.
    """
    index = manifest.current(vault.index_folder)
    known, saved = Manifest(manifest.SCHEMA, "", 0), {}
    if index is not None:
        try:
            known = manifest.load(index)
        except IndexStateError as error:
            if error.newer:
                raise
            return None
        if known.schema != manifest.SCHEMA:
            return None
        there = _load(index, known.listing)
        if there is None:
            return None
        saved = there
    found = difference.between(vault, known, ask_git)
    if withheld and len(found.touched) > MANY:
        return None
    unchecked: set[str] = set()
    anew = bool(found.removed) or not _is_classified(vault, known, saved)
    if found or found.head != known.head:
        for file in difference.read(vault, known, found, ask_git, withheld=withheld):
            known.files[file.path] = file.entry
            if file.lessons is not None:
                anew = True
                unchecked |= set() if withheld else {file.path}
                rows = [row for row in file.rows if row["id"].endswith(_WHOLE)]
                saved[file.path] = list(map(_values, rows))
        for path in found.removed:
            known.files.pop(path, None)
            saved.pop(path, None)
    lessons = [_entry(path, values, ask_git) for path, many in saved.items() for values in many]
    lessons.sort(key=lambda one: str(one["id"]))
    return Listing(
        lessons,
        difference.problems(known, found.skipped),
        anew,
        {path: entry.hash for path, entry in known.files.items()},
        frozenset(path for path, entry in known.files.items() if entry.problem),
        frozenset(unchecked),
    )


def filing(vault: Vault) -> str:
    """Hash the settings that the classifier goes by; without any, nothing."""
    config = vault.config
    said = [f"{phrase}={one}" for phrase, one in config.keywords.items()]
    return hash_of(*said, *config.taxonomy) if said or config.taxonomy else ""


def _is_classified(vault: Vault, known: Manifest, saved: Mapping[str, list[list[Any]]]) -> bool:
    """Whether the classifier's proposals are those of now, if there are any."""
    at = _KEPT.index("filed_by")
    if all(values[at] not in _UNFILED for many in saved.values() for values in many):
        return True
    name = vault.embedder.name if vault.embedder else manifest.NO_EMBEDDER
    return known.settled and known.filing == filing(vault) and known.embedder == name


def _load(index: Path, mark: str) -> dict[str, list[list[Any]]] | None:
    """Read the listing that belongs to a manifest; None if it is not there."""
    try:
        raw = json.loads(ownership.read_text(index / _FILE))
        return dict(raw["files"]) if mark and raw["mark"] == mark else None
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None


def _values(row: Mapping[str, Any]) -> list[Any]:
    """Return what is kept of a row, as JSON values."""
    return [_iso(row[name]) if name in _DATES else row[name] for name in _KEPT]


def _entry(path: str, values: list[Any], dates: bool) -> dict[str, Any]:
    shown = f"{locate.FOLDER}/{path}"
    entry: dict[str, Any] = dict(zip(_SHOWN, (values[0], shown, *values[1:]), strict=True))
    for name in _DATES:
        entry[name] = datetime.fromisoformat(entry[name]) if dates and entry[name] else None
    return entry


def _iso(moment: datetime | None) -> str | None:
    """Return a moment in UTC, as tables keep it."""
    return moment.astimezone(UTC).isoformat() if moment else None


def _below(path: str) -> str:
    return path.partition("/")[2]
