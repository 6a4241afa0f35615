"""The derived tables, which follow from lessons and skills: a list.

Each says whether it is stale, by what the manifest says, and can be made again from what is already
in the index or on disk. They are refreshed in the order of the list, as a later one may read what an
earlier one wrote. `Manifest.derived` has an entry for each that follows the lessons' rows as they are;
whoever writes rows empties it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from vault_index.embed.cache import VectorCache
from vault_index.index import classifier, documents, listing, rows, skills

if TYPE_CHECKING:
    from vault_index.store.manifest import Manifest
    from vault_index.store.table import Table
    from vault_index.vault import Vault

_TITLES = "titles"  # the recipe under which vectors of titles alone are kept
_FRESH = "fresh"  # for a table that depends on nothing but the rows


@dataclass(frozen=True, slots=True)
class Sources:
    """The sources of derived tables: the lessons' rows, the settings and the disk."""

    vault: Vault
    lessons: Table
    manifest: Manifest
    use_cache: bool  # whether to believe the vectors that are kept for all of the user's vaults

    def cache(self, recipe: str) -> VectorCache:
        """Return the vectors that are kept, of those that were embedded in one way."""
        name = f"{self.manifest.embedder} {recipe}"
        home, dimension = self.vault.config.home, self.manifest.dimension
        return VectorCache(home, name, dimension, trusted=self.use_cache)


@dataclass(frozen=True, slots=True)
class Refreshed:
    """The manifest after a derived table was made again, and what there is to report of it."""

    manifest: Manifest
    refiled: int = 0  # rows whose proposed categories changed
    skills: int | None = None  # how many there are, if any of them changed


class Derived(Protocol):
    """A derived table."""

    is_quick: bool  # whether a quick pass refreshes it, too

    def is_stale(self, vault: Vault, manifest: Manifest, /) -> bool:
        """Whether it says other than what it is derived from."""

    def refresh(self, sources: Sources) -> Refreshed:
        """Make it again. The caller holds the index's lock. Raises WriteError, EmbedderError."""


class Categories:
    """The classifier's proposals, in the rows of lessons that nobody filed."""

    is_quick = False

    def is_stale(self, vault: Vault, manifest: Manifest) -> bool:
        """Whether rows or the classifier's settings changed."""
        return listing.categories_are_stale(vault, manifest)

    def refresh(self, sources: Sources) -> Refreshed:
        """Propose again. All that follows the rows is stale then."""
        config = sources.vault.config
        refiled = classifier.reclassify(sources.lessons, config.keywords, config.taxonomy)
        fresh = {listing.CATEGORIES: listing.classifier_settings(sources.vault)}
        return Refreshed(replace(sources.manifest, derived=fresh), refiled=refiled)


class TextIndex:
    """The full-text index of the lessons' table, which counts words of old and new rows together."""

    is_quick = False
    name = "text index"

    def is_stale(self, _vault: Vault, manifest: Manifest) -> bool:
        """Whether rows changed."""
        return self.name not in manifest.derived

    def refresh(self, sources: Sources) -> Refreshed:
        """Take the new rows in."""
        sources.lessons.fold()
        return Refreshed(_with_fresh(sources.manifest, self.name))


class Documents:
    """The table of documents and categories."""

    is_quick = False
    name = "documents"

    def is_stale(self, _vault: Vault, manifest: Manifest) -> bool:
        """Whether rows changed."""
        return self.name not in manifest.derived

    def refresh(self, sources: Sources) -> Refreshed:
        """Write what differs."""
        documents.refresh(sources.lessons, sources.vault.embedder, sources.cache(_TITLES))
        return Refreshed(_with_fresh(sources.manifest, self.name))


class Skills:
    """The table of skills, which follows the SKILL.md files."""

    is_quick = False

    def is_stale(self, vault: Vault, manifest: Manifest) -> bool:
        """Whether a SKILL.md changed."""
        return not manifest.skills_hash or skills.differ(vault, manifest.skills)

    def refresh(self, sources: Sources) -> Refreshed:
        """Write all of them if one differs."""
        cache = sources.cache(rows.RECIPE)
        after, count = skills.refresh(sources.vault, sources.lessons, sources.manifest, cache)
        return Refreshed(after, skills=count)


class Listing:
    """The file that `list` and `show` read: in each pass, as they may be asked before a full one."""

    is_quick = True
    name = "listing"

    def is_stale(self, _vault: Vault, manifest: Manifest) -> bool:
        """Whether rows changed."""
        return not manifest.listing or manifest.derived.get(self.name) != manifest.listing

    def refresh(self, sources: Sources) -> Refreshed:
        """Write it."""
        mark = listing.save(sources.lessons)
        manifest = _with_fresh(sources.manifest, self.name, mark)
        return Refreshed(replace(manifest, listing=mark))


DERIVED: tuple[Derived, ...] = (Categories(), TextIndex(), Documents(), Skills(), Listing())


def _with_fresh(manifest: Manifest, name: str, mark: str = _FRESH) -> Manifest:
    return replace(manifest, derived={**manifest.derived, name: mark})
