"""Commands that change lesson files. The index follows at the next question or, watched, at once."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

from vault_index import api, files, git
from vault_index.api.question import Caller, command
from vault_index.edit import add, categories, filing, import_lessons, remove, update
from vault_index.edit.categories import RenamePlan
from vault_index.edit.update import Put, SentText
from vault_index.errors import ChangedError, VaultError
from vault_index.index.classifier import ProbableCategories
from vault_index.lesson import edits, parse
from vault_index.retrieval import entries
from vault_index.retrieval.hit import WholeEntry
from vault_index.vault import SETTINGS, Vault


@dataclass(frozen=True, slots=True)
class Changed:
    """A lesson whose file was written or removed."""

    id: str
    path: str  # absolute
    removed: bool = False  # the file, with its last lesson


@command
def add_lesson(
    vault: Vault,
    caller: Caller,
    text: str,
    title: str = "",
    categories: Sequence[str] = (),
    tags: Sequence[str] = (),
    type: str = "",
    applies_to: Sequence[str] = (),
    prompts: Sequence[str] = (),
    fires_on: Sequence[str] = (),
    silent_on: Sequence[str] = (),
    fires_on_error: Sequence[str] = (),
    confidence: int | None = None,
    commit: bool = False,
) -> Changed:
    """Put a lesson into the vault: see `add.write`.

    `text` is markdown with or without frontmatter. With `commit` the file is committed, alone. Another
    lesson of the same title is noted.
    """

    def commit_first(path: Path, data: bytes) -> None:
        inside = str(path.relative_to(vault.root))
        git.commit_file(vault.root, inside, data, ["-m", f"Add lesson: {title or path.stem}"])

    written = add.write(
        vault, _bytes(text), title=title, categories=categories, type=type, tags=tags,
        applies_to=applies_to, prompts=prompts, fires_on=fires_on, silent_on=silent_on,
        fires_on_error=fires_on_error, confidence=confidence,
        first=commit_first if commit else None,
    )  # fmt: skip
    with suppress(VaultError):  # it is written
        new_title = parse.parse_file(files.read_file(written), written.name)[0].title.casefold()
        for each in entries.entries(vault):
            is_other = each.path != str(written.relative_to(vault.root))
            if is_other and each.title.casefold() == new_title:
                caller.note(f"note: {each.path} has this title, too: add to that one instead?")
    return Changed(parse.id_of(str(written.relative_to(vault.lessons_dir))), str(written))


@dataclass(frozen=True, slots=True)
class Moved:
    """A lesson's file that was moved, from the vault's root; the lesson has another id."""

    path: str
    to: str
    id: str


@command
def move_lesson(vault: Vault, caller: Caller, name: str, category: str) -> Moved:
    """Move a lesson's file to a category, with its past and what agents used of it."""
    entry = caller.ask(api.lesson.show(name=name))
    change = categories.move(vault, entry.path.partition("/")[2], category)
    folder = vault.lessons_dir.name
    return Moved(f"{folder}/{change.path}", f"{folder}/{change.to}", parse.id_of(change.to))


@command
def ingest(
    vault: Vault, caller: Caller, items: Sequence[SentText], only_new: bool = False
) -> list[Put]:
    """Put texts that a program sent into the vault, each by itself, in the same order.

    A lesson that has the id of one is changed, unless `only_new` are wanted.
    """
    ids = [item.id for item in items if item.id]
    existing = caller.ask(api.lesson.categories(ids=ids)) if ids else {}
    return [update.put_item(vault, each, existing, only_new=only_new) for each in items]


@command
def update_lesson(
    vault: Vault,
    caller: Caller,
    name: str,
    seen: str | None = None,
    **changes: Unpack[update.LessonChanges],
) -> Changed:
    """Change a lesson, named as for `show`: see `update.write`. A section has another id by its title.

    With `seen`, the hash of its file, it is written only if it still is that file.
    """
    entry = caller.ask(api.lesson.show(name=name))
    if seen not in (None, entry.file_hash):
        message = f"{entry.path} was saved since it was opened here"
        raise ChangedError(message, "look at it again, and then edit it")
    before = files.read_file(vault.root / entry.path) if "#" in entry.id else b""
    path = update.write(vault, name, shown=entry, unchanged=seen is not None, **changes)
    id = edits.id_after(entry.id, before, files.read_file(path)) if before else entry.id
    return Changed(id, str(path))


@command
def delete_lesson(
    vault: Vault, caller: Caller, name: str, shown: WholeEntry | None = None
) -> Changed:
    """Delete a lesson.

    `shown` is the entry that somebody saw who agreed to it: another lesson of that name stays.
    """
    entry = shown or caller.ask(api.lesson.show(name=name))
    path = remove.delete(vault, name, shown=entry)
    return Changed(entry.id, str(path), removed=not path.exists())


@command
def rename(
    vault: Vault, caller: Caller, old: str, new: str, write: bool = False
) -> tuple[RenamePlan, str]:
    """Rename a category; only with `write` it happens.

    Return the plan, and the old name where the vault's settings have it, which stay as they are.
    """
    del caller
    planned = categories.plan(vault, old, new)
    if write:
        categories.apply(vault, planned)
    settings = files.read_file(vault.lessons_dir / SETTINGS).decode("utf-8", "replace")
    return planned, planned.old if f'"{planned.old}' in settings else ""


@command
def accept(
    vault: Vault, caller: Caller, proposals: Sequence[ProbableCategories], write: bool = True
) -> tuple[list[str], list[str], list[str]]:
    """Write proposed categories into lesson files; without `write` no file changes.

    Return the files that would have some, those that were written, and why others were not.
    """
    del caller
    planned, failed = filing.write(vault, proposals, preview=True)
    written, failed = filing.write(vault, proposals) if write else ({}, failed)
    return list(planned), list(written), failed


@command
def import_from(
    vault: Vault,
    caller: Caller,
    sources: Sequence[str] = (),
    text: str | None = None,
    format: str = "",
    category: str = "",
    update: bool = False,
    write: bool = False,
) -> import_lessons.ImportPlan:
    """Bring in lessons from files and folders, or from a text.

    Only with `write` files are written; the index then has them. `update` writes what was corrected
    since over files that git has.
    """
    caller.index(vault)
    planned = import_lessons.plan(
        vault,
        list(map(Path, sources)) if text is None else _bytes(text),
        format=format,
        category=category,
        update=update,
        progress_of=caller.progress_of,
    )
    if write:
        import_lessons.apply(vault, planned, caller.progress_of("writing lessons"))
        caller.index(vault)
    return planned


def _bytes(text: str) -> bytes:
    """Return the bytes of a text; one that was read as bytes keeps those that are not UTF-8."""
    return text.encode("utf-8", "surrogateescape")
