"""Import many lessons at once: first a plan of the files to write, then exactly that.

Nothing in the vault is overwritten; `update` may replace a file that git has as it is, or that nobody
touched since it was imported. A lesson that the vault has already, or nearly, is left out with the
reason, so a second run changes nothing.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from vault_index import check, files, git, state
from vault_index.check import harmless
from vault_index.edit import formats, links
from vault_index.edit.formats import Draft, decisions
from vault_index.errors import (
    ChangedError,
    LessonError,
    UnreadableError,
    VaultError,
    WriteError,
    unreadable,
)
from vault_index.hotpath import index_files
from vault_index.index import rows
from vault_index.lesson import edits, parse
from vault_index.lesson.category import checked
from vault_index.lesson.file import LessonFile, hash_of_file
from vault_index.lesson.frontmatter import metadata_of, own_of
from vault_index.retrieval import duplicates
from vault_index.retrieval.duplicates import DUPLICATE_COSINE
from vault_index.store import filters
from vault_index.vault import Vault

INBOX = "inbox"  # the folder of lessons without a category: the classifier proposes some
WRITE, UPDATE, SAME, TAKEN, LEFT_OUT = "write", "update", "same", "taken", "left out"
DUPLICATE, SECRET, REFUSED = "duplicate", "secret", "refused"

Progress = Callable[[int, int], None]  # (lessons compared, lessons)

_OF_VAULT = ("id", "categories", "category")  # keys that an update leaves
MAX_NAME_BYTES = 255  # of a folder, on every file system here

_SUFFIXES = (".md", ".mdc", ".markdown", ".txt", ".jsonl", ".ndjson")


@dataclass(frozen=True, slots=True)
class Item:
    """A lesson file that could be written. `path` is relative to the vault's folder.

    `before` is what an update replaces. A text that is no lesson has no path.
    """

    source: str
    line: int
    path: str
    title: str
    data: bytes
    verdict: str = WRITE  # write | update | same | taken | left out | duplicate | secret | refused
    why: str = ""  # it is not written
    before: bytes | None = None
    origin: Path | None = None  # the file that it is from, in full


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """The plan of an import. `problems` are sources that cannot be read: `path:line: message`.

    `empty` are those with nothing in them to import: no text, a template.
    """

    items: tuple[Item, ...]
    problems: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()

    @property
    def to_write(self) -> list[Item]:
        return [item for item in self.items if item.verdict in (WRITE, UPDATE)]


def read(
    source: Path | bytes, format: str = ""
) -> Iterator[tuple[str, list[Draft], list[LessonError]]]:
    """Read a file, all files of a folder, or bytes; yield each name with its drafts and errors.

    Raises VaultError for a source that is not there or holds nothing of these formats.
    """
    if isinstance(source, bytes):
        yield "-", *formats.read_good(source, "-", format)
        return
    if source.is_dir():
        is_notes = not format and (source / ".obsidian").is_dir()
        format = "obsidian" if is_notes else format
    name = ""
    for name, data in _files(source):
        if isinstance(data, UnreadableError):
            yield name, [], [LessonError(data.message.removeprefix(f"{source / name} "))]
            continue
        is_other = format in ("obsidian", "okf") and not name.endswith(".md")
        yield name, *formats.read_good(data, name, "" if is_other else format)
    if not name:
        hint = f"name one that ends in {', '.join(_SUFFIXES)}"
        raise VaultError(f"{source}: no file to import", hint)


def plan(
    vault: Vault,
    source: Path | bytes | Sequence[Path],
    *,
    format: str = "",
    category: str = "",
    update: bool = False,
    progress_of: Callable[[str], Progress] = lambda _label: lambda _done, _all: None,
) -> ImportPlan:
    """Plan the files that an import writes, and those that it leaves out. Writes nothing.

    `format` is a key of `formats.FORMATS`, guessed without. `category` is for drafts without
    one. `update` writes what was corrected since over the file that an import made. The index must be
    up to date: it is searched for duplicates. Raises VaultError for a source that cannot be read,
    IndexStateError without an index.
    """
    filed = checked(category) if category else ""
    pairs: list[tuple[str, Draft]] = []
    origins: list[Path | None] = []
    problems: list[str] = []
    empty: list[str] = []
    for each in [source] if isinstance(source, (Path, bytes)) else source:
        for name, drafts, errors in read(each, format):
            origin = None if isinstance(each, bytes) else _origin(each, name)
            pairs += [(name, draft) for draft in drafts]
            origins += [origin] * len(drafts)
            empty += [] if drafts or errors else [name]
            for error in errors:
                advice = f" ({error.hint})" if error.hint else ""
                problems.append(f"{name}:{error.line}: {error.message}{advice}")
    placed: list[Item] = []
    taken: dict[str, bytes] = {}
    for (name, draft), origin in zip(decisions.with_links(pairs), origins, strict=True):
        try:
            item = _placed(vault, name, draft, filed, taken)
            item = _where_it_is(vault, item) if update else item
            placed.append(replace(item, origin=origin))
        except VaultError as error:
            problems.append(f"{name}:{draft.line}: {error.message}")
    items = _checked(vault, placed, problems, progress_of("checking lessons"), update=update)
    items = _without_duplicates(vault, items, progress_of("comparing lessons"))
    return ImportPlan(tuple(items), tuple(problems), tuple(empty))


def _checked(
    vault: Vault, placed: list[Item], problems: list[str], progress: Progress, *, update: bool
) -> list[Item]:
    """Return items with the verdict about each file alone; `problems` gets those without one."""
    places = _places(vault, placed)
    items: list[Item] = []
    with check.KeptFindings(vault.config.home) as kept:
        for number, item in enumerate(placed, 1):
            try:
                item = _compared(vault, _linked(vault, item, places))
                items.append(_judged(_updating(vault, item) if update else item, kept))
            except VaultError as error:
                problems.append(f"{item.source}:{item.line}: {error.message}")
            progress(number, len(placed))
    return items


def _origin(source: Path, name: str) -> Path:
    folder = source if source.is_dir() else source.parent
    return Path(os.path.realpath(folder), name)


def _places(vault: Vault, items: Sequence[Item]) -> dict[Path, Path]:
    """Return the target of each file that becomes one lesson file, both in full."""
    targets: dict[Path, Path] = {}
    several: set[Path] = set()
    for item in items:
        if item.origin and item.path:
            several |= {item.origin} & targets.keys()
            targets[item.origin] = Path(os.path.realpath(vault.lessons_dir), item.path)
    return {origin: target for origin, target in targets.items() if origin not in several}


def _linked(vault: Vault, item: Item, places: Mapping[Path, Path]) -> Item:
    """Return an item whose links lead from its place where they led in its source."""
    if item.origin is None or item.verdict != WRITE:
        return item
    target = Path(os.path.realpath(vault.lessons_dir), item.path)
    return replace(item, data=links.moved(item.data, item.origin, target, places))


def apply(
    vault: Vault, planned: ImportPlan, progress: Progress = lambda _done, _all: None
) -> list[Path]:
    """Write the files of a plan and return them. If a file fails, no file of its source stays.

    Files that were created or edited since stay as they are. Raises WriteError.
    """
    written: list[Path] = []
    of_source: list[tuple[Path, Item]] = []
    items = planned.to_write
    try:
        for number, item in enumerate(items, start=1):
            if number > 1 and item.source != items[number - 2].source:
                of_source = []
            file = vault.lessons_dir / item.path
            try:
                files.put_file(file, item.data, expected=item.before, within=vault.root)
            except ChangedError:
                continue  # it came or changed since the plan was made
            of_source.append((file, item))
            written.append(file)
            progress(number, len(items))
        _note_imported(vault, [item for item in items if vault.lessons_dir / item.path in written])
    except BaseException:
        for file, item in of_source:
            with contextlib.suppress(WriteError):
                if item.before is not None:
                    files.change_file(file, item.before, expected=item.data, within=vault.root)
                    continue
                files.remove_file(file, expected=item.data, within=vault.root)
                files.remove_empty(file.parent, vault.lessons_dir)
        raise
    return written


def _files(source: Path) -> Iterator[tuple[str, bytes | UnreadableError]]:
    """Yield a file, or the files of a folder that may hold lessons, by path; hidden ones are private."""
    if not source.is_dir():
        yield _printable(source.name), files.read_named(source)
    for folder, folders, names in os.walk(source, onerror=_refuse) if source.is_dir() else ():
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            file = Path(folder, name)
            is_hidden = name.startswith(".") or file.suffix.lower() not in _SUFFIXES
            if is_hidden or file.is_symlink() or not file.is_file():
                continue
            inside = _printable(str(file.relative_to(source)))
            try:
                yield inside, files.read_file(file)
            except UnreadableError as error:
                yield inside, error


def _refuse(error: OSError) -> None:
    raise unreadable(error.filename, error) from None


def _printable(name: str) -> str:
    return name.encode("utf-8", "replace").decode()


def _placed(
    vault: Vault, source: str, draft: Draft, category: str, taken: dict[str, bytes]
) -> Item:
    """Return the item of a draft, with a number in its path if another draft has its name."""
    if draft.why:
        return Item(source, draft.line, "", "", b"", LEFT_OUT, draft.why)
    folder = draft.categories[0] if draft.categories else category or INBOX
    if any(len(part.encode()) > MAX_NAME_BYTES for part in folder.split("/")):
        raise VaultError("the category is too long for the name of a folder")
    files.refuse_links(vault.lessons_dir / folder, vault.root)
    files.refuse_other_repository(vault.lessons_dir / folder, vault.lessons_dir)
    target = vault.place_for(folder, draft.name)
    path = name = target.relative_to(vault.lessons_dir).as_posix()
    number = 2
    while path in taken and taken[path] != draft.data:
        path = f"{name.removesuffix('.md')}-{number}.md"
        number += 1
    first = parse.parse_file(draft.data, path)[0]
    title = first.document or first.title
    item = Item(source, draft.line, path, title, draft.data)
    if path in taken:
        return replace(item, verdict=SAME, why="twice in what is imported")
    taken[path] = draft.data
    return item


def _compared(vault: Vault, item: Item) -> Item:
    """Return an item with the verdict about what has its name in the vault."""
    if item.verdict != WRITE:
        return item
    try:
        current = index_files.read(vault.lessons_dir / item.path, files.MAX_BYTES)
    except FileNotFoundError:
        return item
    except OSError as error:
        raise unreadable(vault.lessons_dir / item.path, error) from None
    if item.data == current or harmless.with_line(item.data, item.path) == current:
        return replace(item, verdict=SAME, why="in the vault already")
    return replace(item, verdict=TAKEN, why="another lesson has this name in the vault")


def _where_it_is(vault: Vault, item: Item) -> Item:
    """Return an item with the path of the one file of its name and title, wherever that is now."""
    if item.verdict != WRITE or os.path.lexists(vault.lessons_dir / item.path):
        return item
    name = item.path.rpartition("/")[2]
    paths = [file.path for file in vault.files()[0] if f"/{file.path}".endswith(f"/{name}")]
    if len(paths) != 1:
        return item
    try:
        title = _title_in(files.read_file(vault.lessons_dir / paths[0]), paths[0])
    except LessonError:  # it is refused with its path, so the user can correct it
        title = item.title
    return replace(item, path=paths[0]) if title == item.title else item


def _title_in(data: bytes, path: str) -> str:
    lessons = parse.parse_file(data, path)
    return lessons[0].document or lessons[0].title if lessons else ""


def _updating(vault: Vault, item: Item) -> Item:
    """Return an item that replaces the file at its place, if that has its title."""
    if item.verdict != TAKEN:
        return item
    path, before = item.path, files.read_file(vault.lessons_dir / item.path)
    try:
        title, data = _title_in(before, path), _with_own_keys(before, item.data, path)
    except LessonError as error:
        return replace(item, verdict=REFUSED, why=error.message)
    if title != item.title:
        return item
    if data == before:
        return replace(item, verdict=SAME, why="in the vault already")
    if not _was_imported(vault, before):
        committed = git.contents(vault.lessons_dir, {path: ("HEAD", path)}).get(path)
        if committed != before:
            return replace(item, verdict=REFUSED, why="commit the file, then update it")
    return replace(item, data=data, verdict=UPDATE, why="", before=before)


def _was_imported(vault: Vault, data: bytes) -> bool:
    """Whether a file is as an import on this machine wrote it: nobody has touched it since."""
    with state.reading(vault.config.home) as db:
        found = db.execute("SELECT 1 FROM imported WHERE hash = ?", [hash_of_file(data)])
        return found.fetchone() is not None


def _note_imported(vault: Vault, items: Sequence[Item]) -> None:
    """Keep the hashes of the written files; without them an update asks for a commit."""
    with contextlib.suppress(VaultError), state.writing(vault.config.home) as db:
        hashes = [(hash_of_file(item.data),) for item in items]
        db.executemany("INSERT OR IGNORE INTO imported VALUES (?)", hashes)


def _with_own_keys(before: bytes, after: bytes, path: str) -> bytes:
    """Return a new content of a file with the keys that only the old one has, prompts and the like."""
    old, new = (LessonFile.of(data, path) for data in (before, after))
    theirs = metadata_of(new)
    kept = {key: value for key, value in metadata_of(old).items()
            if key not in theirs or key in _OF_VAULT}  # fmt: skip
    after = edits.set_keys(after, kept, path)
    sections = list(parse.slugs_of(new))
    by_slug, same = dict(sections), len(sections) == len(old.sections)
    for number, (slug, section) in enumerate(parse.slugs_of(old)):
        name = slug if slug in by_slug or not same else sections[number][0]
        if (
            name in by_slug
            and (own_keys := own_of(old, section))
            and not own_of(new, by_slug[name])
        ):
            after = edits.set_own_keys(after, name, own_keys, path)
    return after


def _judged(item: Item, kept: check.KeptFindings) -> Item:
    is_new = item.verdict in (WRITE, UPDATE)
    errors = check.errors_in(item.path, item.data, item.before, kept) if is_new else []
    if any(map(harmless.is_said, errors)):
        item = replace(item, data=harmless.with_line(item.data, item.path))
        errors = check.errors_in(item.path, item.data, item.before, kept)
    if not errors:
        return item
    error = errors[0]
    if error.rule == SECRET:
        why = f"{error.message}; if it is none: {harmless.command(errors)}"
        return replace(item, verdict=SECRET, why=why)
    return replace(item, verdict=REFUSED, why=f"{error.rule}: {error.message}")


def _without_duplicates(vault: Vault, items: list[Item], progress: Progress) -> list[Item]:
    """Mark the items whose lessons are nearly in the vault, or in an item before that comes in."""
    import numpy as np

    firsts = [  # the rows of the first passages of each item's lessons
        [
            rows.of_lesson(each, item.path, None, searched=False)[0]
            for each in parse.parse_file(item.data, item.path)
        ]
        if item.verdict in (WRITE, TAKEN)
        else []
        for item in items
    ]
    columns = ("id", "path", "content_hash")
    old_rows, compared = vault.open_index().store.rows_and_vectors(columns, filters.WHOLE)
    paths = [str(row["path"]) for row in old_rows]
    same = {str(row["content_hash"]): path for row, path in zip(old_rows, paths, strict=True)}
    new = duplicates.vectors(vault, [row for first_rows in firsts for row in first_rows], progress)
    if compared is not None and new:  # with room for those that come in
        room = np.empty((sum(map(len, firsts)), compared.shape[1]), np.float32)
        compared = np.concatenate([compared, room])

    def likest(key: str) -> tuple[float, str]:
        if key in same:
            return 1.0, same[key]
        if compared is None or key not in new or not paths:
            return 0.0, ""
        cosines = compared[: len(paths)] @ new[key]
        nearest = int(cosines.argmax())
        return float(cosines[nearest]), paths[nearest]

    judged: list[Item] = []
    for item, first_rows in zip(items, firsts, strict=True):
        likeness = [likest(row["content_hash"]) for row in first_rows]
        if likeness and min(likeness)[0] >= DUPLICATE_COSINE:
            best, path = max(likeness)
            item = replace(item, verdict=DUPLICATE, why=f"{best:.0%} like {path}")
        elif item.verdict == WRITE:
            for key in (row["content_hash"] for row in first_rows):
                same[key] = f"lessons/{item.path}"
                if compared is not None and key in new:
                    compared[len(paths)] = new[key]
                    paths.append(same[key])
        judged.append(item)
    return judged
