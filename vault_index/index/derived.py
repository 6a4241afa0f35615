"""The derived tables, which follow from lessons and skills: a list.

Each says whether it is stale, by what the manifest says, and can be made again from what is already
in the index or on disk. They are refreshed in the order of the list, as a later one may read what an
earlier one wrote. `Manifest.derived` has an entry for each that follows the lessons' rows as they are;
whoever writes rows empties it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from vault_index.embed.cache import Shared, VectorCache
from vault_index.index import classifier, documents, skills
from vault_index.lesson.file import hash_of
from vault_index.store.manifest import Manifest
from vault_index.store.schema import RECIPE
from vault_index.store.table import Table
from vault_index.vault import Vault

_TITLES = "titles"  # the recipe under which vectors of titles alone are kept
_FRESH = "fresh"  # for a table that depends on nothing but the rows
CATEGORIES = "categories"


@dataclass(frozen=True, slots=True)
class Sources:
    """The sources of derived tables: the lessons' rows, the settings and the disk."""

    vault: Vault
    lessons: Table
    manifest: Manifest
    use_cache: bool  # whether to believe the vectors that are kept for all of the user's vaults

    def cache(self, recipe: str, shared: Shared | None = None) -> VectorCache:
        """Return the vectors that are kept, of those that were embedded in one way."""
        name = f"{self.manifest.embedder} {recipe}"
        home, dimension = self.vault.config.home, self.manifest.dimension
        return VectorCache(home, name, dimension, trusted=self.use_cache, shared=shared)


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
    """Write the classifier's proposals into the rows of lessons that nobody filed.

    All that follows the rows is stale then.
    """
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


DERIVED = (
    Derived(CATEGORIES, _categories_are_stale, _classify),
    # have full text count words of old and new rows together
    _of_rows("text index", lambda sources: sources.lessons.fold()),
    _of_rows(
        "places",
        lambda sources: documents.refresh(
            sources.lessons, sources.vault.embedder, sources.cache(_TITLES)
        ),
    ),
    Derived("skills", _skills_changed, _write_skills, is_quick=True),
)
