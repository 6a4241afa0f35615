"""Documents and categories: all of them, the one that a name means, even misspelt; lessons by number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

from vault_index.errors import EmbedderError, VaultError
from vault_index.index.derived import CATEGORY, DOCUMENT
from vault_index.lesson import category, passages
from vault_index.lesson.category import COURSES
from vault_index.store import filters
from vault_index.text.blocks import one_line

if TYPE_CHECKING:
    import numpy as np

    from vault_index.vault import Vault

# Names are compared by their letters (the mean of rapidfuzz's token_set_ratio and token_sort_ratio,
# 0..1) and by what they mean (cosine). Measured on 60 half-remembered names of 60 documents: letters
# or meaning alone get 53 right.
MIN_LIKENESS = 0.9  # a name that is less like any title means none of them
INITIALS_WEIGHT = 0.4  # `ML` for Machine Learning
MIN_BEGINNING = 3  # characters of a word that stand for the whole of it: `intro`
BEGUN = 0.9  # what such a word counts
MISSPELT_PERCENT = 80  # words that are less alike are others
SHOWN = 3  # nearest names in the error
LATELY = timedelta(days=30)

_PATH = "name one by its path: --in lessons/..."
_SMALL = frozenset("a an and at by do for from i in is it of on or so the to we what with".split())
_COLUMNS = ("id", "path", "title", "description", "link", "author", "kind")


@dataclass(frozen=True, slots=True)
class Document:
    """A document or a category of the vault, and how much a name is like its own (0..2)."""

    kind: str  # document | category
    path: str  # of the document's file from the vault's root; or the category
    title: str
    description: str
    link: str
    author: str
    likeness: float = 0.0
    lesson: str = ""  # id of the one lesson of it that is meant


def places(vault: Vault) -> list[Document]:
    """List the documents and categories, by kind and path. Raises IndexStateError without an index."""
    return sorted(
        (document for document, _ in _all(vault)),
        key=lambda document: (document.kind, document.path),
    )


@dataclass(frozen=True, slots=True)
class CourseLesson:
    """A lesson of a course; `number` is None where it says none."""

    number: int | None
    title: str
    link: str
    id: str


@dataclass(frozen=True, slots=True)
class Course:
    """A document whose lessons have numbers."""

    path: str
    title: str
    link: str
    author: str
    lessons: tuple[CourseLesson, ...]
    lesson_count: int


def courses(vault: Vault) -> list[Course]:
    """List the documents with numbered lessons, by title.

    Lessons that hooks leave out are not among them. Raises IndexStateError without an index.
    """
    numbered = f"({filters.NUMBERED}) OR ({filters.below([COURSES])})"
    of_courses = filters.all_of(filters.WHOLE, filters.FOR_AGENTS, numbered)
    paths = vault.open_index().store.tally("path", of_courses)
    parts_of, found = parts(vault, list(paths)), []
    for each in places(vault):
        if each.kind == DOCUMENT and each.path in paths:
            lessons = tuple(
                CourseLesson(part.number, part.title, part.link, part.id)
                for part in parts_of[each.path]
                if not part.is_withheld
            )
            course = Course(
                path=each.path,
                title=each.title,
                link=each.link,
                author=each.author,
                lessons=lessons,
                lesson_count=len(lessons),
            )
            found.append(course)
    return sorted(found, key=lambda course: (course.title.lower(), course.path))


@dataclass(frozen=True, slots=True)
class VaultCounts:
    """The numbers of a vault's lessons and documents, and of the lessons that came `lately`."""

    lessons: int
    documents: int
    categories: int
    lately: int


def count(vault: Vault, today: date) -> VaultCounts:
    """Count the lessons and documents of a vault. Raises IndexStateError without an index."""
    store = vault.open_index().store
    lessons = store.rows(("created_at", "updated_at"), filters.WHOLE)
    dates = [row["created_at"] or row["updated_at"] for row in lessons]
    filed = category.counts([each] for each in store.tally("categories", filters.WHOLE))
    return VaultCounts(
        lessons=len(lessons),
        documents=sum(each.kind == DOCUMENT for each in places(vault)),
        categories=len(filed),
        lately=sum(day is not None and today - LATELY <= day.date() <= today for day in dates),
    )


@dataclass(frozen=True, slots=True)
class DocumentsStatus:
    """The documents of a vault for `lessons status`; None without an index."""

    documents: int | None = None


def state(vault: Vault) -> DocumentsStatus:
    """Count the documents."""
    with suppress(VaultError):
        return DocumentsStatus(sum(document.kind == DOCUMENT for document in places(vault)))
    return DocumentsStatus()


def near(vault: Vault, name: str, *, for_agent: bool = False) -> list[Document]:
    """Rank the documents and categories by how much a name is like theirs, best first.

    With `for_agent` documents that hooks leave out are not among them.
    """
    pairs = _all(vault)
    if for_agent:
        withheld = vault.open_index().store.tally("path", filters.WITHHELD)
        pairs = [each for each in pairs if each[0].path not in withheld]
    if not pairs:
        return []
    from rapidfuzz import fuzz, process, utils

    titles = [document.title for document, _ in pairs]
    # of the words they share, and of all their words: else a title of one word is like any with it
    letters = sum(
        process.cdist([name], titles, scorer=scorer, processor=utils.default_process)[0]
        for scorer in (fuzz.token_set_ratio, fuzz.token_sort_ratio)
    )
    meaning = _cosines(vault, name, [vector for _, vector in pairs])
    has_meaning = any(meaning)
    ranked = []
    for (document, _), percent, cosine in zip(pairs, letters, meaning, strict=True):
        words = 0.0 if has_meaning else _words(name, document.title)
        initials = INITIALS_WEIGHT * _abbreviates(name, document.title)
        is_same = name.strip().lower() in (document.title.lower(), document.path.lower())
        likeness = 2.0 if is_same else max(float(percent) / 200, words) + cosine + initials
        ranked.append(replace(document, likeness=likeness))
    return sorted(ranked, key=lambda document: (-document.likeness, document.kind, document.path))


def resolve(vault: Vault, name: str, *, for_agent: bool = False) -> Document:
    """Return the document or category of a name, even misspelt or in part; see `near`.

    Raises VaultError, with the nearest names, if none is near enough.
    """
    ranked = near(vault, name, for_agent=for_agent)
    alike = [document for document in ranked if document.likeness == ranked[0].likeness]
    if len(alike) > 1 and len({document.title for document in alike}) == 1:
        paths = ", ".join(document.path for document in alike[:SHOWN])
        raise VaultError(f"{len(alike)} documents are called {alike[0].title!r}: {paths}", _PATH)
    least = MIN_LIKENESS if vault.embedder is not None else MIN_LIKENESS - 0.25  # letters alone
    if ranked and ranked[0].likeness >= least:
        return ranked[0]
    some = ", ".join(repr(one_line(document.title, 60)) for document in ranked[:SHOWN])
    hint = f"name one of the nearest: {some}" if some else "name a lesson of several passages"
    raise VaultError(f"no document or category is called {name!r}", hint)


def within(document: Document) -> str:
    """Return the condition for the rows of a document, or in and below a category."""
    if document.kind == CATEGORY:
        return filters.below([document.path])
    return filters.any_of("path", [document.path])


def _all(vault: Vault) -> list[tuple[Document, np.ndarray | None]]:
    table = vault.open_index().documents
    if not table.exists():
        return []
    rows, vectors = table.rows_and_vectors(_COLUMNS)
    places = [Document(**{name: row[name] for name in _COLUMNS if name != "id"}) for row in rows]
    return list(zip(places, vectors if vectors is not None else [None] * len(places), strict=True))


def _cosines(vault: Vault, name: str, vectors: Sequence[np.ndarray | None]) -> list[float]:
    """Return the cosine of a name with each title; zeros where nothing can be embedded."""
    try:
        embedder = vault.embedder
        if embedder is not None and embedder.name == vault.open_index().embedder:
            name_vector = embedder.embed_queries([name])[0]
            return [0.0 if vector is None else float(vector @ name_vector) for vector in vectors]
    except EmbedderError:
        pass
    return [0.0] * len(vectors)


def _words(name: str, title: str) -> float:
    """Return the share of a name's words that a title has, 0..1, also begun or misspelt ones."""
    from rapidfuzz import fuzz, utils

    name_words, title_words = (
        [word for word in utils.default_process(text).split() if word not in _SMALL]
        for text in (name, title)
    )
    if not name_words or not title_words:
        return 0.0

    def alike(one: str, other: str) -> float:
        least = min(len(one), len(other))
        if one != other and least >= MIN_BEGINNING and one[:least] == other[:least]:
            return BEGUN
        return float(fuzz.ratio(one, other, score_cutoff=MISSPELT_PERCENT)) / 100

    shares = [[alike(one, other) for other in title_words] for one in name_words]
    of_name: float = sum(map(max, shares)) / len(name_words)
    of_own: float = sum(map(max, zip(*shares, strict=True))) / len(title_words)
    return (of_name + of_own) / 2


def _abbreviates(name: str, title: str) -> bool:
    """Whether a word of a name is the initials of neighbouring words of a title."""
    of_title = category.normalise(title).split("-")
    initials = "".join(word[0] for word in of_title if word and word not in _SMALL)
    words = "".join(char for char in name.lower() if char.isalnum() or char == " ").split()
    return any(1 < len(word) < 5 and word in initials for word in words if word not in _SMALL)


_PART_COLUMNS = ("lesson_id", "path", "title", "text", "position", "is_whole", "withheld")


@dataclass(frozen=True, slots=True)
class Part(CourseLesson):
    """A lesson of a document."""

    is_withheld: bool


def parts(vault: Vault, paths: Sequence[str]) -> dict[str, list[Part]]:
    """Return each document's lessons in order; an unknown path has no lessons.

    Lessons that hooks leave out are among them. Raises IndexStateError without an index.
    """
    rows = (
        vault.open_index().store.rows(_PART_COLUMNS, filters.any_of("path", paths)) if paths else ()
    )
    first: dict[str, int] = {}  # where each lesson begins among the passages of its file
    wholes: dict[str, list[Mapping[str, Any]]] = {path: [] for path in paths}
    for row in rows:
        id = row["lesson_id"]
        if row["position"] >= 0:
            first[id] = min(row["position"], first.get(id, row["position"]))
        if row["is_whole"]:
            wholes[row["path"]].append(row)

    def part(row: Mapping[str, Any]) -> Part:
        text = row["text"] or ""
        numbering, label = passages.number_of(text), passages.label(row["title"], text)
        link = numbering.link if numbering else ""
        return Part(label, row["title"], link, row["lesson_id"], bool(row["withheld"]))

    def order(row: Mapping[str, Any]) -> tuple[int, str]:
        return first.get(row["lesson_id"], 0), row["lesson_id"]

    return {path: [*map(part, sorted(lessons, key=order))] for path, lessons in wholes.items()}


def lesson_numbered(vault: Vault, path: str, wanted: int) -> Part | None:
    """Return a document's lesson of that number; None if it has none, or withholds that one.

    A lesson says its number at the beginning of its text or of its title. Those that say none count
    on from the one before; a document where none does begins with 1.
    """
    lessons = parts(vault, [path])[path]
    index = index_of_number([lesson.number for lesson in lessons], wanted)
    return None if index is None or lessons[index].is_withheld else lessons[index]


def narrowed(vault: Vault, document: Document, number: int) -> Document:
    """Return a document of which one lesson is meant, by its number.

    Raises VaultError, with the numbers that there are, for a lesson that the document has not.
    """
    lesson = lesson_numbered(vault, document.path, number)
    if lesson is not None:
        title = f"{document.title}, lesson {number}: {lesson.title}"
        return replace(document, lesson=lesson.id, title=title)
    if document.kind == CATEGORY:
        raise VaultError(
            f"{document.path} is a category", "name the document whose lesson is meant"
        )
    pieces = parts(vault, [document.path])[document.path]
    labels = [each.number for each in pieces if not each.is_withheld]
    named = [label for label in labels if label is not None] or range(1, len(labels) + 1)
    hint = f"name one of {', '.join(map(str, named))}"
    raise VaultError(f"{document.title!r} has no lesson {number}", hint)


def index_of_number(labels: list[int | None], wanted: int) -> int | None:
    """Return the index of a number among the labels of lessons in their order."""
    if wanted in labels:
        return labels.index(wanted)
    if not any(label is not None for label in labels):
        return wanted - 1 if 1 <= wanted <= len(labels) else None
    before, start = 0, 0  # the label before a run without labels, and where that begins
    for index, label in enumerate([*labels, None]):
        if index < len(labels) and label is None:
            continue
        run = index - start
        if run and before < wanted and (label is None or wanted < label):
            # a course may skip a number, and then has one lesson fewer than numbers
            return start + min(wanted - before, run) - 1 if wanted <= before + run + 1 else None
        before, start = label or 0, index + 1
    return None
