"""What one may search in: a row per document and per category, and which of them a name means.

A document is a file that holds more than one passage: a long lesson, a course, a collection. The
table follows from the lessons' rows alone, so it is made out anew whenever those have settled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vault_index import categories as tree
from vault_index import store as stores
from vault_index.embed.cache import VectorCache
from vault_index.errors import EmbedderError, VaultError
from vault_index.lesson import hash_of
from vault_index.store import Row, Store

if TYPE_CHECKING:
    import numpy as np

    from vault_index.embed import Embedder
    from vault_index.vault import Vault

DOCUMENT, CATEGORY = "document", "category"

# Names are compared by their letters (the mean of rapidfuzz's token_set_ratio and token_sort_ratio,
# 0..1) and by what they mean (cosine). Measured on 60 half-remembered names of 60 documents: letters
# or meaning alone get 53 right.
LEAST = 0.9  # what is less like any name means none of them
INITIALS = 0.4  # `ML` for Machine Learning
SHOWN = 3  # near names, when none is meant

_PATH = "give the path of one: --in lessons/..."
_SMALL = frozenset("a an and at by do for from i in is it of on or so the to we what with".split())
_COLUMNS = ("id", "path", "title", "description", "link", "author", "type")
_SOURCE = ("id", "path", "document", "title", "description", "link", "written_by", "author")


@dataclass(frozen=True, slots=True)
class Place:
    """A document or a category of the vault, and how much a name is like its own (0..2)."""

    kind: str  # document | category
    path: str  # of the document's file from the vault's root; or the category
    title: str
    description: str
    link: str
    author: str
    likeness: float = 0.0


def refresh(lessons: Store, catalog: Store, embedder: Embedder | None, cache: VectorCache) -> int:
    """Make the catalog say what the lessons' rows say; give the number of rows it now has.

    The caller holds the index's lock. Raises WriteError, EmbedderError.
    """
    wanted = {row["id"]: row for row in [*_documents(lessons), *_categories(lessons)]}
    known: dict[str, str] = {}
    if catalog.exists():
        known = {row["id"]: row["content_hash"] for row in catalog.rows(("id", "content_hash"))}
    elif wanted:
        catalog.create()
    if {key: row["content_hash"] for key, row in wanted.items()} != known:
        rows = list(wanted.values())
        if catalog.dimension and embedder is not None:
            _embed(rows, embedder, cache)
        catalog.replace_all(rows)
        catalog.settle()
    return len(wanted)


def places(vault: Vault) -> list[Place]:
    """List the documents and categories, by kind and path. Raises IndexStateError without an index."""
    return sorted((place for place, _ in _all(vault)), key=lambda one: (one.kind, one.path))


def near(vault: Vault, name: str) -> list[Place]:
    """Rank the documents and categories by how much a name is like theirs, best first."""
    known = _all(vault)
    if not known:
        return []
    from rapidfuzz import fuzz, process, utils

    titles = [place.title for place, _ in known]
    # of the words they share, and of all their words: else a title of one word is like any with it
    letters = sum(
        process.cdist([name], titles, scorer=scorer, processor=utils.default_process)[0]
        for scorer in (fuzz.token_set_ratio, fuzz.token_sort_ratio)
    )
    meaning = _cosines(vault, name, [vector for _, vector in known])
    found = []
    for number, (place, _) in enumerate(known):
        likeness = (
            float(letters[number]) / 200
            + meaning[number]
            + INITIALS * _abbreviates(name, place.title)
        )
        if name.strip().lower() in (place.title.lower(), place.path.lower()):
            likeness = 2.0
        found.append(_with(place, likeness))
    return sorted(found, key=lambda one: (-one.likeness, one.kind, one.path))


def resolve(vault: Vault, name: str) -> Place:
    """Give the document or category that a name means, misspelt or in part as it may be.

    Raises VaultError, which tells the names that are nearest, if none is meant.
    """
    ranked = near(vault, name)
    alike = [one for one in ranked if one.likeness == ranked[0].likeness]
    if len(alike) > 1 and len({one.title for one in alike}) == 1:
        paths = ", ".join(one.path for one in alike[:SHOWN])
        raise VaultError(f"{len(alike)} documents are called {alike[0].title!r}: {paths}", _PATH)
    least = LEAST if vault.embedder is not None else LEAST - 0.25  # letters alone
    if ranked and ranked[0].likeness >= least:
        return ranked[0]
    some = ", ".join(f"{one.title!r:.60}" for one in ranked[:SHOWN])
    raise VaultError(
        f"no document or category is called {name!r}",
        f"the nearest are {some}" if some else "a document is a lesson of several passages",
    )


def within(place: Place) -> str:
    """Make the filter for the rows of a document, or in and below a category."""
    if place.kind == CATEGORY:
        return stores.below([place.path])
    return stores.of_paths([place.path])


def _documents(lessons: Store) -> list[Row]:
    by_path: dict[str, list[dict[str, Any]]] = {}
    for row in lessons.rows(_SOURCE):
        by_path.setdefault(row["path"], []).append(row)
    found = []
    for path, rows in by_path.items():
        if len(rows) > 1:
            rows.sort(key=lambda row: str(row["id"]))
            first = rows[0]
            about = first["description"] or "; ".join(_sections(rows))
            author = first["written_by"] or first["author"] or ""
            found.append(_row(DOCUMENT, path, first["document"], about, first["link"], author))
    return found


def _sections(rows: Sequence[dict[str, Any]]) -> list[str]:
    titles = [row["title"] for row in rows if str(row["id"]).endswith("@0")]
    return titles if len(titles) > 1 else []


def _categories(lessons: Store) -> list[Row]:
    used = tree.counts(row["categories"] for row in lessons.rows(("id", "categories")))
    return [
        _row(CATEGORY, one, one.replace("/", " ").replace("-", " "), "", "", "") for one in used
    ]


def _row(kind: str, path: str, title: str, about: str, link: str, author: str) -> Row:
    return Row(
        id=f"{kind}:{path}",
        lesson_id=path,
        path=path,
        title=title,
        description=about,
        link=link,
        author=author,
        type=kind,
        fulltext=title,
        is_whole=True,
        content_hash=hash_of(title, about, link, author),
    )


def _embed(rows: list[Row], embedder: Embedder, cache: VectorCache) -> None:
    """Give the rows the vectors of their titles."""
    titles = {hash_of(row["title"]): row["title"] for row in rows}
    vectors = cache.get_or_make(titles, lambda new: list(embedder.embed_documents(new)))
    for row in rows:
        row["vector"] = vectors[hash_of(row["title"])]


def _all(vault: Vault) -> list[tuple[Place, np.ndarray | None]]:
    catalog = vault.open_index().catalog
    if not catalog.exists():
        return []
    rows, vectors = catalog.rows_and_vectors(_COLUMNS, "true")
    found = []
    for number, row in enumerate(rows):
        place = Place(
            row["type"], row["path"], row["title"], row["description"] or "", row["link"] or "",
            row["author"] or "",
        )  # fmt: skip
        found.append((place, None if vectors is None else vectors[number]))
    return found


def _cosines(vault: Vault, name: str, vectors: Sequence[np.ndarray | None]) -> list[float]:
    """Give the cosine of a name with each title; zeros where nothing can be embedded."""
    try:
        embedder = vault.embedder
        if embedder is not None and embedder.name == vault.open_index().embedder:
            asked = embedder.embed_query(name)
            return [0.0 if one is None else float(one @ asked) for one in vectors]
    except EmbedderError:
        pass
    return [0.0] * len(vectors)


def _abbreviates(name: str, title: str) -> bool:
    """Tell whether a word of a name is the initials of words of a title that stand side by side."""
    said = [word for word in tree.normalise(title).split("-") if word not in _SMALL]
    initials = "".join(word[0] for word in said if word)
    words = "".join(char if char.isalnum() or char == " " else "" for char in name.lower())
    asked = [word for word in words.split() if word not in _SMALL]
    return any(1 < len(word) < 5 and word in initials for word in asked)


def _with(place: Place, likeness: float) -> Place:
    return Place(
        place.kind, place.path, place.title, place.description, place.link, place.author, likeness
    )
