"""A lesson beside the others: whether the vault has it already, and fires at the same prompts.

`against_index` asks the index, in the watcher where there is one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vault_index.check.finding import WARNING, Finding, line_of_key
from vault_index.errors import LessonError, VaultError
from vault_index.hotpath import index_files
from vault_index.index import rows
from vault_index.lesson import category, passages
from vault_index.lesson.file import MAX_BYTES, decode
from vault_index.lesson.parse import Lesson, parse_file
from vault_index.search import entries
from vault_index.store import filters
from vault_index.store.reader import Reader, once
from vault_index.store.schema import RECIPE
from vault_index.text.blocks import one_line
from vault_index.vault import shown

if TYPE_CHECKING:
    import numpy as np

    from vault_index.store.schema import LessonRow
    from vault_index.store.sync import Progress
    from vault_index.vault import Vault

# Four pairs of the evaluation set's 1,870 notes are above it: three say the same, one nearly.
DUPLICATE_COSINE = 0.9
CANDIDATES = 64  # passages, of which several may be of the same lesson
_BATCH = 256  # rows that are embedded between two reports of progress


def is_same(row: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two lessons whose vectors are near say the same: under one title, or word for word.

    Near vectors alone are no sign: of 108 runbooks 45 are as near to another one, which is about memory
    where this one is about processors, or about an error where this one is about the end.
    """
    return any(" ".join(row[name].casefold().split()) == " ".join(other[name].casefold().split())
               for name in ("title", "text"))  # fmt: skip


@dataclass(frozen=True, slots=True)
class IndexFindings:
    """The findings about some files, and the categories of all other lessons."""

    findings: tuple[Finding, ...]
    categories: tuple[str, ...]


def against_index(vault: Vault, paths: Sequence[str]) -> IndexFindings:
    """Check files of the vault's folder, as they are on disk, against an index that knows them.

    Raises IndexStateError without one.
    """
    store = vault.open_index().store
    mine = store.rows(("categories",), filters.any_of("path", map(shown, paths)))
    others = Counter(store.tally("categories"))
    others.subtract(each for row in mine for each in row["categories"])
    branches = category.counts([each] for each, times in others.items() if times > 0)
    findings: list[Finding] = []
    for path in paths:
        try:
            data = index_files.read(vault.lessons_dir / path, MAX_BYTES + 1)
            text = decode(data, path)
            lessons = parse_file(data, path)
        except (OSError, LessonError):  # deleted, or reported by another rule
            continue
        findings += [*_duplicates(vault, lessons, path), *_dead_links(vault, lessons, path)]
        for lesson in lessons[:1]:  # each lesson of a file has the file's prompts
            findings += _clashes(vault, lesson, path, text)
    return IndexFindings(tuple(findings), tuple(sorted(branches)))


def _duplicates(vault: Vault, lessons: list[Lesson], path: str) -> Iterator[Finding]:
    """Report for each of these lessons the one elsewhere that is most like it, or has its title."""
    written = [lesson for lesson in lessons if lesson.text.strip()]
    firsts = [rows.of_lesson(lesson, shown(path), None)[0] for lesson in written]
    made = vectors(vault, firsts)
    titles = _titles(vault.open_index().store)
    for lesson, first in zip(written, firsts, strict=True):
        near = nearest(vault, made[first["content_hash"]]) if made else ()
        like = next((each for each in near if each[1]["path"] != shown(path)), None)
        if like:
            cosine, row = like
            like_it = f"{cosine:.0%} like {row['path']} ({one_line(row['title'], 60)!r})"
            message = f"{one_line(lesson.title, 60)!r} is {like_it}: add to that one instead?"
            yield Finding(shown(path), 1, "near-duplicate", message, WARNING)
        elif other := titles.get(_title_key(first), set()) - {shown(path)}:
            message = f"it has the title of {min(other)}, too: say how they differ"
            yield Finding(shown(path), 1, "same-title", message, WARNING)


@once
def _titles(store: Reader) -> dict[tuple[str, str], set[str]]:
    paths: dict[tuple[str, str], set[str]] = {}
    for row in store.rows(("title", "document", "path"), filters.WHOLE):
        paths.setdefault(_title_key(row), set()).add(row["path"])
    return paths


def _title_key(row: Mapping[str, Any]) -> tuple[str, str]:
    return row["title"].casefold(), row["document"].casefold()


def _dead_links(vault: Vault, lessons: Sequence[Lesson], path: str) -> Iterator[Finding]:
    """Yield a warning for each lesson that one says to supersede and that is not there."""
    links = (link for lesson in lessons for link in passages.related_of(lesson.text))
    names = sorted({name for kind, name in links if kind == passages.SUPERSEDES})
    known = entries.entries(vault) if names else []
    for name in names:
        try:
            entries.named(name, known)
        except VaultError:
            message = f"it supersedes {name!r:.80}, and no lesson is called so"
            yield Finding(shown(path), 1, "relation", message, WARNING)


def nearest(
    vault: Vault, vector: np.ndarray, min_cosine: float = DUPLICATE_COSINE
) -> Iterator[tuple[float, dict[str, Any]]]:
    """Yield the lessons that are most like a vector, each with its cosine, the most like first.

    By default those that say the same. Beginnings are compared: a passage of mere code is like any other.
    """
    store = vault.open_index().store
    places, cosines = store.nearest(vector, CANDIDATES)
    close = cosines >= min_cosine
    for cosine, row in zip(cosines[close].tolist(), store.take(places[close]), strict=True):
        if row["is_whole"]:
            yield cosine, row


def vectors(
    vault: Vault, firsts: Sequence[LessonRow], progress: Progress = lambda _done, _all: None
) -> dict[str, np.ndarray]:
    """Return the vectors of rows by their content hash, kept for the index; none without an embedder."""
    by_hash = {row["content_hash"]: row for row in firsts}
    hashes = list(by_hash)
    made: dict[str, np.ndarray] = {}
    for start in range(0, len(hashes), _BATCH):
        some = {key: by_hash[key] for key in hashes[start : start + _BATCH]}
        known = vault.open_index().store.vectors(some)
        made |= rows.kept_vectors(vault, RECIPE, rows.embed, some, known)
        progress(len(made), len(hashes))
    return made


def _clashes(vault: Vault, lesson: Lesson, path: str, text: str) -> Iterator[Finding]:
    hashes = {rows.hash_of_prompt(prompt): prompt for prompt in lesson.fires_on}
    store = vault.open_index().store
    others: dict[str, str] = {}
    for row in store.rows(("path", "content_hash"), filters.of_taught(hashes, rows.FIRES)):
        if row["path"] != shown(path):
            others.setdefault(row["content_hash"], row["path"])
    for key, other in sorted(others.items()):
        message = f"{hashes[key]!r:.80} fires {other}, too: the better match of the two comes first"
        yield Finding(shown(path), line_of_key(text, "fires_on"), "taught-twice", message, WARNING)
