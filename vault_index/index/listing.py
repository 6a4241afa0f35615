"""The lessons as their files are now, read without a table: for `list`, `show` and `categories`.

`listing.json`, beside the manifest, holds the columns of each lesson's row but its text, and
`listing-later.json` those of files that changed since it was written: of 100,000 lessons the whole takes
four seconds. The manifest names the listing that belongs to it, so they are never of different times. A
listing answers while no file's stamp is other than the manifest's; else a sync comes first. Without any
index the files are read, by the same functions as in a sync. Only `save` writes.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vault_index import files
from vault_index.errors import IndexStateError, VaultError
from vault_index.hotpath import index_files
from vault_index.index import diff
from vault_index.lesson import parse
from vault_index.lesson.file import hash_of
from vault_index.store import filters, manifest, ownership
from vault_index.store.manifest import Manifest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from vault_index.store.manifest import Problem
    from vault_index.store.table import Table
    from vault_index.vault import Vault

COLUMNS = (
    *("lesson_id", "path", "title", "document", "categories", "filed_by", "tags", "type"),
    *("confidence", "created_at", "updated_at", "author", "link", "withheld"),
)
CATEGORIES = "categories"  # the name under which a manifest says that proposals are fresh
MANY = 50  # files: reading them for secrets and the like takes as long as a sync

_FILE, _LATER = "listing.json", "listing-later.json"
MANY_LATER = 1_000  # files that are other than in the whole listing
_STORED = tuple(name for name in COLUMNS if name != "path")
_TITLE = _STORED.index("title")
_NAMES = ("id", "path", *_STORED[1:])  # the names in an entry
_DATES = ("created_at", "updated_at")
_UNFILED = ("classifier", "nobody")


@dataclass(frozen=True, slots=True)
class Listing:
    """The lessons, sorted by id, as `search.entries` has them without text, and the files' problems."""

    lessons: list[dict[str, Any]]
    problems: list[Problem]
    hashes: Mapping[str, str] = field(
        default_factory=dict
    )  # of files, by path in the vault's folder
    is_first: bool = False  # without an index: no classifier has seen them

    def is_filed(self, lessons: Iterable[Mapping[str, Any]]) -> bool:
        """Whether the categories of some lessons are those that the table would give."""
        return not self.is_first or all(each["filed_by"] not in _UNFILED for each in lessons)


def save(table: Table, last: str = "", changed: Collection[str] | None = None) -> str:
    """Write what a table says of each lesson, and return the mark for the manifest. Raises WriteError.

    `last` is the mark of the listing that is there, and `changed` are the files whose rows are others
    since, None for all: few of them go into a file beside it.
    """
    folder = table.index
    base, later = _later(folder, last)
    few = changed is not None and len(later) + len(changed) <= MANY_LATER
    few = few and _begins(folder / _FILE, base)
    paths = [f"{index_files.FOLDER}/{path}" for path in changed or ()]
    where = filters.all_of(filters.WHOLE, filters.any_of("path", paths)) if few else filters.WHOLE
    by_path: dict[str, list[list[Any]]] = {}
    for row in table.rows(COLUMNS, where) if paths or not few else ():
        by_path.setdefault(row["path"].partition("/")[2], []).append(_values(row))
    if few:
        by_path = {**later, **{path: [] for path in changed or ()}, **by_path}
    ordered = {path: sorted(by_path[path]) for path in sorted(by_path)}
    data = json.dumps(ordered, separators=(",", ":"))
    mark = hash_of(base, data) if few else hash_of(data)
    content = f'{{"mark":"{mark}","of":"{base if few else ""}","files":{data}}}'
    files.replace_file(folder / (_LATER if few else _FILE), content.encode())
    return mark


def now(vault: Vault, *, ask_git: bool = True, withheld: bool = True) -> Listing | None:
    """Return the lessons as the last sync left them, or without an index as the files are.

    None where only a sync can tell: something changed since, or without an index there are many files.
    Without `ask_git` authors may be those of before, and there are no dates; without `withheld` the
    first lessons lack the reason for which hooks leave them out. Raises IndexStateError for an index of
    a newer version, ForeignIndexError.
    """
    recorded, saved = _saved(vault)
    if recorded is None or saved is None:
        return None
    changes = diff.scan(vault, recorded, ask_git)
    is_first = not (recorded.files or saved)
    if withheld and len(changes.touched) > MANY:
        return None
    if not changes.is_empty(recorded):
        authors = diff.ask_git(vault, recorded, changes)
        read = [*diff.read(vault, recorded, changes, authors, withheld=withheld)]
        if not is_first and (changes.removed or any(each.rows is not None for each in read)):
            return None
        recorded = manifest.with_files(recorded, {each.path: each.entry for each in read}, ())
        if is_first:
            rows = {each.path: each.rows or () for each in read}
            saved = {path: [_values(row) for row in rows[path] if row["is_whole"]] for path in rows}
    if not (is_first or _is_classified(vault, recorded, saved)):
        return None
    lessons = [_entry(path, each, ask_git) for path, several in saved.items() for each in several]
    return Listing(
        sorted(lessons, key=lambda lesson: str(lesson["id"])),
        diff.problems(recorded, changes.skipped),
        {path: entry.hash for path, entry in recorded.files.items()},
        is_first,
    )


def titled(vault: Vault, title: str) -> list[str]:
    """Return the paths from the vault's root of lessons with a title, as their files are now."""
    recorded, saved = _saved(vault)
    if recorded is None or saved is None:
        recorded, saved = Manifest(manifest.SCHEMA, "", 0), {}
    changes = diff.scan(vault, recorded, ask_git=False)
    known = {path for path in saved if path in changes.listed and path not in changes.touched}
    pairs = [(path, values[_TITLE]) for path in known for values in saved[path]]
    for path in changes.touched:
        with suppress(VaultError):
            data = files.read_file(vault.lessons_dir / path)
            pairs += [(path, lesson.title) for lesson in parse.parse_file(data, path)]
    wanted = title.casefold()
    return sorted(
        {f"{index_files.FOLDER}/{path}" for path, has in pairs if has.casefold() == wanted}
    )


def categories_are_stale(vault: Vault, recorded: Manifest) -> bool:
    """Whether the classifier's proposals are of other rows or settings than those of now."""
    return recorded.derived.get(CATEGORIES) != classifier_settings(vault)


def classifier_settings(vault: Vault) -> str:
    """Return a hash of the settings that the classifier goes by; "" without any."""
    config = vault.config
    keywords = [f"{phrase}={category}" for phrase, category in config.keywords.items()]
    return hash_of(*keywords, *config.taxonomy) if keywords or config.taxonomy else ""


def _saved(vault: Vault) -> tuple[Manifest | None, Mapping[str, list[list[Any]]] | None]:
    """Return the manifest and its listing, both empty without an index; None for unusable ones."""
    index = manifest.current(vault.index_dir)
    if index is None:
        return Manifest(manifest.SCHEMA, "", 0), {}
    try:
        recorded = manifest.load(index)
    except IndexStateError as error:
        if error.newer:
            raise
        return None, None
    return recorded, _load(index, recorded.listing) if recorded.schema == manifest.SCHEMA else None


def _is_classified(
    vault: Vault, recorded: Manifest, saved: Mapping[str, Sequence[Sequence[Any]]]
) -> bool:
    """Whether the classifier's proposals are those of now, if there are any."""
    column = _STORED.index("filed_by")
    if all(values[column] not in _UNFILED for several in saved.values() for values in several):
        return True
    name = vault.embedder.name if vault.embedder else manifest.NO_EMBEDDER
    return recorded.embedder == name and not categories_are_stale(vault, recorded)


def _load(index: Path, mark: str) -> dict[str, list[list[Any]]] | None:
    """Read the listing that belongs to a manifest; None if it is not there."""
    base, later = _later(index, mark)
    raw = _read(index / _FILE)
    return {**raw["files"], **later} if base and raw["mark"] == base else None


def _later(index: Path, mark: str) -> tuple[str, dict[str, list[list[Any]]]]:
    """Return the mark of the whole listing under that of a manifest, and what is other since, by file."""
    raw = _read(index / _LATER)
    return (raw["of"], raw["files"]) if mark and raw["mark"] == mark else (mark, {})


def _begins(file: Path, mark: str) -> bool:
    """Whether a listing has a mark, by its beginning."""
    try:
        with file.open("rb") as opened:
            return bool(mark) and opened.read(100).startswith(f'{{"mark":"{mark}"'.encode())
    except OSError:
        return False


def _read(file: Path) -> dict[str, Any]:
    try:
        raw = json.loads(ownership.read_text(file))
        return {"mark": str(raw["mark"]), "of": raw.get("of", ""), "files": dict(raw["files"])}
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return {"mark": "", "of": "", "files": {}}


def _values(row: Mapping[str, Any]) -> list[Any]:
    """Return what is stored of a row, as JSON values; moments are in UTC, as in tables."""
    values = [row[name] for name in _STORED]
    return [
        value.astimezone(UTC).isoformat() if isinstance(value, datetime) else value
        for value in values
    ]


def _entry(path: str, values: list[Any], dates: bool) -> dict[str, Any]:
    shown = f"{index_files.FOLDER}/{path}"
    entry: dict[str, Any] = dict(zip(_NAMES, (values[0], shown, *values[1:]), strict=True))
    for name in _DATES:
        entry[name] = datetime.fromisoformat(entry[name]) if dates and entry[name] else None
    return entry
