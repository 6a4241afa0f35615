"""Import many lessons at once: first a plan of what is written where, then exactly that.

Nothing in the vault is ever overwritten. A lesson that is in the vault already, word by word or nearly
so, is left out with the reason, so a second run changes nothing. No source file is half imported.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from vault_index import check, files
from vault_index.edit import formats
from vault_index.edit.formats import Draft
from vault_index.errors import VaultError, WriteError
from vault_index.index import rows
from vault_index.lesson import parse
from vault_index.lesson.category import checked
from vault_index.search import taught
from vault_index.search.taught import DUPLICATE_COSINE
from vault_index.store import filters
from vault_index.vault import Vault

INBOX = "inbox"  # the folder of lessons without a category: the classifier proposes some
WRITE, SAME, TAKEN = "write", "same", "taken"
DUPLICATE, SECRET, REFUSED = "duplicate", "secret", "refused"

Progress = Callable[[int, int], None]  # (lessons compared, lessons)

MAX_NAME_BYTES = 255  # of a folder, on every file system here

_SUFFIXES = (".md", ".markdown", ".txt", ".jsonl", ".ndjson")


@dataclass(frozen=True, slots=True)
class Item:
    """A lesson file that could be written. `path` is relative to the vault's folder."""

    source: str
    line: int
    path: str
    title: str
    data: bytes
    verdict: str = WRITE  # write | same | taken | duplicate | secret | refused
    why: str = ""  # it is not written


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of an import. `problems` are sources that cannot be read: `path:line: message`.

    `empty` are those with nothing in them to import: no text, a template.
    """

    items: tuple[Item, ...]
    problems: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()

    @property
    def to_write(self) -> list[Item]:
        """The items that would be written."""
        return [item for item in self.items if item.verdict == WRITE]


def read(
    source: Path | bytes, format: str = ""
) -> tuple[list[tuple[str, Draft]], list[str], list[str]]:
    """Read a file, all files of a folder, or bytes.

    Return (source, draft) pairs, the sources that cannot be read and why, and those without a draft.

    Raises VaultError for a source that is not there or holds nothing of these formats.
    """
    if isinstance(source, bytes):
        pairs: Iterator[tuple[str, bytes | OSError]] = iter([("-", source)])
    elif source.is_dir():
        if not format and (source / ".obsidian").is_dir():
            format = "obsidian"
        pairs = _files(source)
    else:
        pairs = iter([(_printable(source.name), files.read_file(source))])
    drafts: list[tuple[str, Draft]] = []
    problems: list[str] = []
    empty: list[str] = []
    is_empty = True
    for name, data in pairs:
        is_empty = False
        if isinstance(data, OSError):
            problems.append(f"{name}: cannot be read: {data.strerror}")
            continue
        is_other = format in ("obsidian", "okf") and not name.endswith(".md")
        kind = "" if is_other else format
        several, errors = formats.read_good(data, name, kind)
        drafts += [(name, draft) for draft in several]
        empty += [] if several or errors else [name]
        for error in errors:
            message = error.message.removeprefix(f"{name}: ")
            advice = f" ({error.hint})" if error.hint else ""
            problems.append(f"{name}:{error.line}: {message}{advice}")
    if is_empty and isinstance(source, Path):
        hint = f"name one that ends in {', '.join(_SUFFIXES)}"
        raise VaultError(f"{source}: no file to import", hint)
    return drafts, problems, empty


def plan(
    vault: Vault,
    source: Path | bytes | Sequence[Path],
    *,
    format: str = "",
    category: str = "",
    progress: Progress = lambda _done, _all: None,
) -> Plan:
    """Plan what an import writes where, and what it leaves out and why. Writes nothing.

    `format` is a key of `formats.FORMATS`, guessed without. `category` is for drafts without
    one. The index must be up to date: it is searched for duplicates. Raises VaultError for a source that
    cannot be read, IndexStateError without an index.
    """
    filed = checked(category) if category else ""
    pairs: list[tuple[str, Draft]] = []
    problems: list[str] = []
    empty: list[str] = []
    for each in [source] if isinstance(source, (Path, bytes)) else source:
        drafts, wrong, nothing = read(each, format)
        pairs, problems, empty = pairs + drafts, problems + wrong, empty + nothing
    items: list[Item] = []
    taken: dict[str, bytes] = {}
    for name, draft in pairs:
        try:
            items.append(_judged(_placed(vault, name, draft, filed, taken)))
        except VaultError as error:
            problems.append(f"{name}:{draft.line}: {error.message}")
    items = _without_duplicates(vault, items, progress)
    return Plan(tuple(items), tuple(problems), tuple(empty))


def apply(vault: Vault, planned: Plan, progress: Progress = lambda _done, _all: None) -> list[Path]:
    """Write the files of a plan and return them. If a file fails, no file of its source stays.

    Files that were created or edited since stay as they are. Raises WriteError.
    """
    written: list[Path] = []
    of_source: list[tuple[Path, bytes]] = []
    items = planned.to_write
    try:
        for number, item in enumerate(items, start=1):
            if number > 1 and item.source != items[number - 2].source:
                of_source = []
            file = vault.lessons_dir / item.path
            if not files.create_file(file, item.data, within=vault.root):
                continue  # it came since the plan was made
            of_source.append((file, item.data))
            written.append(file)
            progress(number, len(items))
    except BaseException:
        for file, data in of_source:
            with contextlib.suppress(WriteError):
                files.remove_file(file, expected=data, within=vault.root)
                files.remove_empty(file.parent, vault.lessons_dir)
        raise
    return written


def _files(folder: Path) -> Iterator[tuple[str, bytes | OSError]]:
    """Yield the files of a folder that may hold lessons, by path; hidden files are private."""
    for place, folders, names in os.walk(folder, onerror=_refuse):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            file = Path(place, name)
            if name.startswith(".") or file.suffix.lower() not in _SUFFIXES:
                continue
            if file.is_symlink() or not file.is_file():
                continue
            try:
                yield _printable(str(file.relative_to(folder))), file.read_bytes()
            except OSError as error:
                yield _printable(str(file.relative_to(folder))), error


def _refuse(error: OSError) -> None:
    raise VaultError(f"{error.filename} cannot be read: {error.strerror}") from None


def _printable(name: str) -> str:
    """Return a file's name as text, with "?" for each byte that is not UTF-8."""
    return name.encode("utf-8", "replace").decode()


def _placed(
    vault: Vault, source: str, draft: Draft, category: str, taken: dict[str, bytes]
) -> Item:
    """Return where a draft goes, with a number if another draft of this import has its name."""
    folder = draft.categories[0] if draft.categories else category or INBOX
    if any(len(part.encode()) > MAX_NAME_BYTES for part in folder.split("/")):
        raise VaultError("the category is too long for the name of a folder")
    files.refuse_links(vault.lessons_dir / folder, vault.root)
    files.refuse_other_repository(vault.lessons_dir / folder, vault.lessons_dir)
    path = f"{folder}/{draft.name}.md"
    number = 2
    while path in taken and taken[path] != draft.data:
        path = f"{folder}/{draft.name}-{number}.md"
        number += 1
    first = parse.parse_file(draft.data, path)[0]
    title = first.document or first.title
    item = Item(source, draft.line, path, title, draft.data)
    if path in taken:
        return replace(item, verdict=SAME, why="twice in what is imported")
    taken[path] = draft.data
    try:
        there = (vault.lessons_dir / path).read_bytes()
    except OSError:
        return item
    if there == draft.data:
        return replace(item, verdict=SAME, why="in the vault already")
    return replace(item, verdict=TAKEN, why="another lesson has this name in the vault")


def _judged(item: Item) -> Item:
    error = check.first_error(item.path, item.data) if item.verdict == WRITE else None
    if error is None:
        return item
    if error.rule == SECRET:
        return replace(item, verdict=SECRET, why=error.message)
    return replace(item, verdict=REFUSED, why=f"{error.rule}: {error.message}")


def _without_duplicates(vault: Vault, items: list[Item], progress: Progress) -> list[Item]:
    """Mark the items all of whose lessons are, nearly so, in the vault or in an item that comes in.

    In their order: an item that is left out does not cause another to be left out.
    """
    import numpy as np

    firsts = [  # the rows of the first passages of each item's lessons
        [
            rows.of_lesson(each, item.path, None)[0]
            for each in parse.parse_file(item.data, item.path)
        ]
        if item.verdict in (WRITE, TAKEN)
        else []
        for item in items
    ]
    columns = ("id", "path", "content_hash")
    there, compared = vault.open_index().store.rows_and_vectors(columns, filters.WHOLE)
    paths = [str(row["path"]) for row in there]
    same = {str(row["content_hash"]): path for row, path in zip(there, paths, strict=True)}
    new = taught.vectors(vault, [row for own in firsts for row in own], progress)
    if compared is not None and new:  # with room for those that come in
        room = np.empty((sum(map(len, firsts)), compared.shape[1]), np.float32)
        compared = np.concatenate([compared, room])

    def likest(key: str) -> tuple[float, str]:
        if key in same:
            return 1.0, same[key]
        if compared is None or key not in new or not paths:
            return 0.0, ""
        cosines = compared[: len(paths)] @ new[key]
        place = int(cosines.argmax())
        return float(cosines[place]), paths[place]

    judged: list[Item] = []
    for item, own in zip(items, firsts, strict=True):
        likeness = [likest(row["content_hash"]) for row in own]
        if likeness and min(likeness)[0] >= DUPLICATE_COSINE:
            best, path = max(likeness)
            item = replace(item, verdict=DUPLICATE, why=f"{best:.0%} like {path}")
        elif item.verdict == WRITE:
            for key in (row["content_hash"] for row in own):
                same[key] = f"lessons/{item.path}"
                if compared is not None and key in new:
                    compared[len(paths)] = new[key]
                    paths.append(same[key])
        judged.append(item)
    return judged
