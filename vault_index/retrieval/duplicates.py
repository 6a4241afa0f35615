"""A lesson beside the others: whether the vault has it already, and fires at the same prompts.

`against_index` asks the index, in the watcher where there is one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from vault_index.check.finding import WARNING, Finding, line_of_key
from vault_index.errors import LessonError, VaultError
from vault_index.hotpath import index_files
from vault_index.index import rows
from vault_index.lesson import category, passages
from vault_index.lesson.file import MAX_BYTES, decode
from vault_index.lesson.parse import Lesson, parse_file
from vault_index.retrieval import entries
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
_FEW = 4  # lessons: to read all vectors takes longer than to ask LanceDB for so many


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


class _LessonText(NamedTuple):
    """A lesson file as it is on disk; its path is relative to the vault's folder."""

    path: str
    text: str
    lessons: Sequence[Lesson]


def against_index(vault: Vault, paths: Sequence[str]) -> IndexFindings:
    """Check files of the vault's folder, as they are on disk, against an index that knows them.

    Raises IndexStateError without one.
    """
    store = vault.open_index().store
    mine = store.rows(("categories",), filters.any_of("path", map(shown, paths)))
    others = Counter(store.tally("categories"))
    others.subtract(each for row in mine for each in row["categories"])
    branches = category.counts([each] for each, times in others.items() if times > 0)
    read = [*_read(vault, paths)]
    alike, clashing = _duplicates(vault, read), _clashes(store, read)
    findings: list[Finding] = []
    for path, _, lessons in read:
        findings += [*alike[path], *_dead_links(vault, lessons, path), *clashing[path]]
    return IndexFindings(tuple(findings), tuple(sorted(branches)))


def _read(vault: Vault, paths: Sequence[str]) -> Iterator[_LessonText]:
    for path in paths:
        with suppress(OSError, LessonError):  # deleted, or reported by another rule
            data = index_files.read(vault.lessons_dir / path, MAX_BYTES + 1)
            yield _LessonText(path, decode(data, path), parse_file(data, path))


def _duplicates(vault: Vault, files: Sequence[_LessonText]) -> Mapping[str, Sequence[Finding]]:
    """Report for each lesson the one elsewhere that is most like it, or has its title; by path."""
    written = [
        (file.path, lesson, rows.of_lesson(lesson, shown(file.path), None, searched=False)[0])
        for file in files
        for lesson in file.lessons
        if lesson.text.strip()
    ]
    vector_of = vectors(vault, [first for _, _, first in written])
    store = vault.open_index().store
    titles = _titles(store)
    wanted = [
        (shown(path), vector_of[first["content_hash"]]) for path, _, first in written if vector_of
    ]
    near = _likest_elsewhere(store, wanted)
    found: dict[str, list[Finding]] = {file.path: [] for file in files}
    for path, lesson, first in written:
        if like := next(near, None):
            cosine, row = like
            like_it = f"{cosine:.0%} like {row['path']} ({one_line(row['title'], 60)!r})"
            message = f"{one_line(lesson.title, 60)!r} is {like_it}: add to that one instead?"
            found[path].append(Finding(shown(path), 1, "near-duplicate", message, WARNING))
        elif other := titles.get(_title_key(first), set()) - {shown(path)}:
            message = f"it has the title of {min(other)}, too: say how they differ"
            found[path].append(Finding(shown(path), 1, "same-title", message, WARNING))
    return found


def _likest_elsewhere(
    store: Reader, wanted: Sequence[tuple[str, np.ndarray]]
) -> Iterator[tuple[float, Mapping[str, Any]] | None]:
    """Yield for a path and a vector each the most like lesson of another file, None without one.

    With its cosine. Beginnings are compared, as in `nearest`.
    """
    if not wanted:
        return
    import numpy as np

    if len(wanted) > _FEW:
        store.load(warm=True)
    near = [*store.near(np.stack([vector for _, vector in wanted]), DUPLICATE_COSINE, CANDIDATES)]
    places = np.unique(np.concatenate([found for found, _ in near]))
    row_of = dict(zip(places.tolist(), store.take(places), strict=True))
    for (path, _), (found, cosines) in zip(wanted, near, strict=True):
        like = zip(cosines.tolist(), map(row_of.__getitem__, found.tolist()), strict=True)
        others = ((cosine, row) for cosine, row in like if row["is_whole"] and row["path"] != path)
        yield next(others, None)


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
    lessons_of_vault = entries.entries(vault) if names else []
    for name in names:
        try:
            entries.named(name, lessons_of_vault)
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
    vector_of: dict[str, np.ndarray] = {}
    for start in range(0, len(hashes), _BATCH):
        some = {key: by_hash[key] for key in hashes[start : start + _BATCH]}
        kept = vault.open_index().store.vectors(some)
        vector_of |= rows.kept_vectors(vault, RECIPE, rows.embed, some, kept)
        progress(len(vector_of), len(hashes))
    return vector_of


def _clashes(store: Reader, files: Sequence[_LessonText]) -> Mapping[str, Sequence[Finding]]:
    """Report prompts that fire a lesson of a file and one elsewhere; by path."""
    # each lesson of a file has the file's prompts
    prompts = {
        file.path: {rows.hash_of_prompt(each): each for each in lesson.fires_on}
        for file in files
        for lesson in file.lessons[:1]
    }
    paths: dict[str, list[str]] = {}
    hashes = sorted({key for taught in prompts.values() for key in taught})
    where = filters.of_taught(hashes, rows.FIRES)
    for row in store.rows(("path", "content_hash"), where) if hashes else ():
        paths.setdefault(row["content_hash"], []).append(row["path"])
    found: dict[str, list[Finding]] = {file.path: [] for file in files}
    for path, text, _ in files:
        for key, prompt in sorted(prompts.get(path, {}).items()):
            other = next((each for each in paths.get(key, ()) if each != shown(path)), None)
            if other:
                message = (
                    f"{prompt!r:.80} fires {other}, too: the better match of the two comes first"
                )
                line = line_of_key(text, "fires_on")
                found[path].append(Finding(shown(path), line, "taught-twice", message, WARNING))
    return found
