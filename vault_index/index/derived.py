"""The derived tables, which follow from lessons and skills: a list.

Each says whether it is stale, and is made from what is in the index or on disk, in the order of the
list. `Manifest.derived` has an entry for each that is up to date; whoever writes rows empties it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from vault_index.embed.cache import Shared, VectorCache
from vault_index.index import classifier, skills, words
from vault_index.lesson import category
from vault_index.lesson.file import hash_of
from vault_index.store import filters
from vault_index.store.lance import Table
from vault_index.store.manifest import Manifest
from vault_index.store.schema import DOCUMENTS, RECIPE, DocumentRow
from vault_index.store.sync import fill
from vault_index.vault import Vault

_TITLES = "titles"  # the recipe under which vectors of titles alone are kept
_FRESH = "fresh"  # for a table that depends on nothing but the rows
CATEGORIES, TEXT_INDEX = "categories", "text index"
FOLDED_ROWS = 200  # full text looks through the rows that are newer than its index: 40 ms per 1,000


@dataclass(frozen=True, slots=True)
class Sources:
    """The sources of derived tables: the lessons' rows, the settings and the disk."""

    vault: Vault
    lessons: Table
    manifest: Manifest
    use_cache: bool  # whether to believe the vectors that are kept for all of the user's vaults
    at_most: int | None = None  # vectors that are made; where more are missing, none

    def cache(self, recipe: str, shared: Shared | None = None) -> VectorCache:
        """Return the vectors that are kept, of those that were embedded in one way."""
        name = f"{self.manifest.embedder} {recipe}"
        home, dimension = self.vault.config.home, self.manifest.dimension
        return VectorCache(
            home, name, dimension, trusted=self.use_cache, shared=shared, at_most=self.at_most
        )


@dataclass(frozen=True, slots=True)
class Refreshed:
    """The manifest after a derived table was made again, and what there is to report of it."""

    manifest: Manifest
    refiled: int = 0  # rows whose proposed categories changed
    skills: int | None = None  # how many there are, if any of them changed


@dataclass(frozen=True, slots=True)
class Derived:
    """A derived table.

    `is_stale` is whether it says other than what it is derived from. `refresh` makes it again, while the
    caller holds the index's lock; it raises WriteError, EmbedderError.
    """

    name: str
    is_stale: Callable[[Vault, Manifest], bool]
    refresh: Callable[[Sources], Refreshed]
    is_quick: bool = False  # whether a quick pass refreshes it, too


def _of_rows(name: str, make: Callable[[Sources], object]) -> Derived:
    def refresh(sources: Sources) -> Refreshed:
        make(sources)
        derived = {**sources.manifest.derived, name: _FRESH}
        return Refreshed(replace(sources.manifest, derived=derived))

    return Derived(name, lambda _vault, manifest: name not in manifest.derived, refresh)


def _categories_are_stale(vault: Vault, recorded: Manifest) -> bool:
    return recorded.derived.get(CATEGORIES) != _classifier_settings(vault)


def _classifier_settings(vault: Vault) -> str:
    config = vault.config
    keywords = [f"{phrase}={category}" for phrase, category in config.keywords.items()]
    return hash_of(*keywords, *config.taxonomy) if keywords or config.taxonomy else ""


def _classify(sources: Sources) -> Refreshed:
    """Write the classifier's proposals into the rows of lessons that nobody filed."""
    embed = classifier.embed_of(sources.vault, sources.manifest.embedder)
    refiled = classifier.reclassify(sources.lessons, sources.vault.config, embed)
    fresh = {CATEGORIES: _classifier_settings(sources.vault)}
    return Refreshed(replace(sources.manifest, derived=fresh), refiled=refiled)


def _skills_changed(vault: Vault, manifest: Manifest) -> bool:
    return not manifest.skills_hash or skills.stamps(vault) != manifest.skills


def _write_skills(sources: Sources) -> Refreshed:
    cache = sources.cache(RECIPE)
    after, count = skills.refresh(sources.vault, sources.lessons, sources.manifest, cache)
    return Refreshed(after, skills=count)


# The places to search in: a row per document and per category.
#
# A document is a file that holds more than one passage, or a lesson under a title that is not its own: a
# long lesson, a course, a collection.
DOCUMENT, CATEGORY = "document", "category"
_SOURCE = (
    *("id", "path", "document", "title", "description", "link", "written_by", "author", "is_whole"),
    "categories",
)


def _write_places(sources: Sources) -> None:
    lessons, embedder = sources.lessons, sources.vault.embedder
    table = Table(lessons.index, lessons.dimension, DOCUMENTS)
    passages = lessons.rows(_SOURCE, filters.PASSAGES)
    rows = _documents(passages)
    for path in category.counts(row["categories"] for row in passages):
        rows.append(_row(CATEGORY, path, path.replace("/", " ").replace("-", " ")))
    last = table.rows(("id", "content_hash")) if table.exists() else []
    before, after = ({row["id"]: row["content_hash"] for row in each} for each in (last, rows))
    if before == after and (not before or embedder is None or table.has_all_vectors()):
        return
    titles = {hash_of(row["title"]): row["title"] for row in rows}
    make = embedder.embed_documents if table.dimension and embedder is not None else None
    vectors, error = sources.cache(_TITLES).get_or_known(make, titles)
    if before != after or not error:
        fill(table, rows, [vectors.get(hash_of(row["title"])) for row in rows])
    if error:  # so that the next pass tries again
        raise error


def _documents(lessons: Sequence[dict[str, Any]]) -> list[DocumentRow]:
    by_path: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in lessons:
        by_path[row["path"]].append(row)
    documents: list[DocumentRow] = []
    for path, rows in by_path.items():
        if len(rows) > 1 or rows[0]["document"] not in (None, "", rows[0]["title"]):
            rows.sort(key=lambda row: str(row["id"]))
            first = rows[0]
            sections = [row["title"] for row in rows if row["is_whole"]]
            about = first["description"] or "; ".join(sections if len(sections) > 1 else ())
            author = first["written_by"] or first["author"] or ""
            title, link = first["document"], first["link"]
            documents.append(_row(DOCUMENT, path, title, about, link, author))
    return documents


def _row(
    kind: str, path: str, title: str, about: str = "", link: str = "", author: str = ""
) -> DocumentRow:
    return DocumentRow(
        id=f"{kind}:{path}",
        kind=kind,
        path=path,
        title=title,
        description=about,
        link=link,
        author=author,
        content_hash=hash_of(title, about, link, author),
    )


DERIVED = (
    Derived(CATEGORIES, _categories_are_stale, _classify),
    # have full text count words of old and new rows together
    _of_rows(TEXT_INDEX, lambda sources: sources.lessons.fold()),
    _of_rows("words", lambda sources: words.refresh(sources.lessons)),
    _of_rows("places", _write_places),
    Derived("skills", _skills_changed, _write_skills, is_quick=True),
)
