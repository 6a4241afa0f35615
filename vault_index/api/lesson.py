"""Questions about lessons: all of them, one, its page, what is around it, its past."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from itertools import islice
from typing import TYPE_CHECKING, Any, Unpack

from vault_index.api.question import Caller, command, question, recorded
from vault_index.errors import LessonError, UnreadableError, VaultError
from vault_index.hotpath.index_files import FOLDER
from vault_index.retrieval.hit import Entry, Like, ListOptions, Named, Relation, WholeEntry

if TYPE_CHECKING:
    from vault_index.vault import Vault

MAX_KEYS = 50  # of a file's frontmatter
MAX_CHARS = 1000  # of one of its values
MAX_PROMPTS = 30  # each is a search
MAX_EDITS = 50  # commits, of which each is a call of git


@question
def select(vault: Vault, **chosen: Unpack[ListOptions]) -> tuple[Entry, ...]:
    """List the lessons that are chosen."""
    from vault_index.retrieval import entries

    return tuple(entries.entries(vault, **chosen))


@question
def show(vault: Vault, name: str) -> WholeEntry:
    """Return one lesson with its text, also by the beginning of its name."""
    from vault_index.retrieval import above, entries

    elsewhere = above.named(vault, name) if ":" in name else None
    other, id = elsewhere[1:] if elsewhere else (vault, name)
    entry = entries.entry(other, id, beginnings=True)
    if elsewhere:
        id, path = elsewhere[0].marked(entry.id, entry.path)
        entry = replace(entry, id=id, path=path)
    return entry


@dataclass(frozen=True, slots=True)
class Counts:
    """The number of lessons by category: in and below it, and in it alone."""

    counts: Mapping[str, int]
    own: Mapping[str, int]


@question
def count(vault: Vault) -> Counts:
    """Count the lessons of each category."""
    from vault_index.retrieval import entries

    return Counts(entries.categories(vault), entries.categories(vault, alone=True))


@question
def categories(vault: Vault, ids: Sequence[str]) -> Mapping[str, list[str]]:
    """Return the categories of the lessons that have exactly these ids, by id."""
    from vault_index.retrieval import entries

    return entries.filed(vault, ids)


@question
def sources(vault: Vault, paths: Sequence[str]) -> Mapping[str, str]:
    """Return the sources of the lessons in some files, by id, from their frontmatter."""
    from vault_index import files
    from vault_index.lesson import parse

    found: dict[str, str] = {}
    for path in paths:
        below = path.removeprefix(f"{FOLDER}/")
        with suppress(LessonError, UnreadableError):  # gone since it was indexed
            lessons = parse.parse_file(files.read_file(vault.lessons_dir / below), below)
            found |= {each.id: each.source for each in lessons if each.source}
    return found


@dataclass(frozen=True, slots=True)
class Page:
    """A lesson with its text; for no lesson, or several of this name, None and the ones `near` it.

    `metadata` are the keys of its file's frontmatter with their values, `of_file` the lessons of the file
    in their order.
    """

    entry: WholeEntry | None
    near: tuple[Named, ...] = ()
    metadata: tuple[tuple[str, tuple[str, ...]], ...] = ()
    of_file: tuple[Named, ...] = ()


@question
def page(vault: Vault, name: str) -> Page:
    """Return a lesson with all that its page shows."""
    from vault_index.retrieval import documents, entries

    entry, near = entries.entry_or_near(vault, name)
    if entry is None:
        return Page(None, near)
    parts = documents.parts(vault, [entry.path])[entry.path]
    of_file = tuple(Named(part.id, part.title) for part in parts)
    return Page(entry, (), tuple(_metadata(vault, entry.path)), of_file)


@dataclass(frozen=True, slots=True)
class Tally:
    """The number of times that agents got a lesson, the last time, and `word`, its last rating.

    Both are "" for never.
    """

    uses: int
    last_used: str
    word: str


@recorded
def tally(vault: Vault, id: str) -> Tally:
    """Return the use of a lesson: how often agents got it, and when last."""
    from vault_index.recall import ratings
    from vault_index.store import injections

    home, root = vault.config.home, vault.root
    uses, last = injections.uses(home, root, [id])[id], injections.last_use(home, root, id)
    return Tally(uses, last, str(ratings.last_of(vault).get(id, "")))


@question
def nearest(vault: Vault, id: str, most: int = 5) -> tuple[Like, ...]:
    """List the lessons that are most like one."""
    from vault_index.retrieval import query

    return tuple(query.nearest(vault, _entry(vault, id), most))


@question
def related(vault: Vault, id: str, both: bool = False) -> tuple[Relation, ...]:
    """List the lessons that a lesson is related to; with `both`, also those that name it."""
    from vault_index.retrieval import entries

    return tuple(entries.related(vault, _entry(vault, id), both=both))


@dataclass(frozen=True, slots=True)
class Tried:
    """A lesson's own prompt: one that `is_silent` must not find the lesson."""

    prompt: str
    is_silent: bool
    passes: bool


@dataclass(frozen=True, slots=True)
class TriedPrompts:
    """A lesson's own prompts, and how many there are beyond these."""

    prompts: tuple[Tried, ...]
    left_out: int


@question
def prompts(vault: Vault, id: str) -> TriedPrompts:
    """Try a lesson's own prompts."""
    from vault_index.recall import select

    entry = _entry(vault, id)
    taught = [(prompt, False) for prompt in entry.fires_on]
    taught += [(prompt, True) for prompt in entry.silent_on]
    tried = []
    for prompt, is_silent in taught[:MAX_PROMPTS]:
        hits = select.for_prompt(vault, prompt).hits
        comes = any(hit.lesson_id == entry.id for hit in hits)
        tried.append(Tried(prompt, is_silent, comes is not is_silent))
    return TriedPrompts(tuple(tried), len(taught) - len(tried))


@command
def diff(vault: Vault, caller: Caller, id: str, commit: str) -> str:
    """Return the patch of a lesson's file in one of the last commits that `share.log` lists."""
    from vault_index.share import history

    return history.patch(vault, caller.ask(show(name=id)).path, commit, MAX_EDITS)


def _entry(vault: Vault, id: str) -> WholeEntry:
    from vault_index.retrieval import entries

    entry, _ = entries.entry_or_near(vault, id)
    if entry is None:
        raise VaultError(f"no lesson {id}", "see `lessons list`")
    return entry


def _metadata(vault: Vault, path: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    from vault_index import files
    from vault_index.lesson.file import LessonFile
    from vault_index.lesson.frontmatter import metadata_of

    with suppress(VaultError):
        files.refuse_links(vault.root / path, vault.root)
        metadata = metadata_of(LessonFile.of(files.read_file(vault.root / path), path))
        for key, value in islice(metadata.items(), MAX_KEYS):
            yield str(key)[:100], _words(value)


def _words(value: Any) -> tuple[str, ...]:
    members = [] if value is None else value if isinstance(value, list) else [value]
    words = (each.isoformat() if isinstance(each, date) else str(each) for each in members)
    return tuple(word[:MAX_CHARS] for word in islice(words, MAX_KEYS))
