"""Accepted lessons that belong together by a tag, with what a skill takes from each.

A tag is compared as its skill's name writes it: `C++` and `c` are one. A lesson may be in several
clusters; of several with the same lessons one counts: the one with a skill, else the first by name.

Lessons that a skill must not repeat are left out before anything is counted, so `status` calls ready
what `build` writes.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from vault_index.check import prompt_injection, secrets
from vault_index.check.finding import ERROR
from vault_index.features import SkillsTable
from vault_index.recall import allowed
from vault_index.store import filters, injections

if TYPE_CHECKING:
    from vault_index.vault import Vault

TYPE = "code_pattern"  # of the lessons that skills are made of
PREFIX = "learned-"
MAX_NAME_CHARS = 64  # of a skill, by the format
_LISTS = ("tags", "fires_on", "silent_on", "categories")
_COLUMNS = ("lesson_id", "path", "title", "text", "confidence", "file_hash", *_LISTS)


@dataclass(frozen=True, slots=True)
class UsedLesson:
    """An accepted lesson, and how often agents were given it."""

    id: str
    path: str  # from the vault's root
    title: str
    text: str
    confidence: int  # 1..5
    tags: tuple[str, ...]
    fires_on: tuple[str, ...]
    silent_on: tuple[str, ...]
    categories: tuple[str, ...] = ()
    uses: int = 0


@dataclass(frozen=True, slots=True)
class Cluster:
    """The patterns of a tag, by id, and the least that makes a skill of them.

    `left_out` are lessons that a skill must not repeat, by id, with the reason.
    """

    tag: str  # as in the skill's name
    patterns: tuple[UsedLesson, ...]
    least: SkillsTable = field(default_factory=SkillsTable)
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return PREFIX + self.tag

    @property
    def confidence(self) -> float:
        return sum(each.confidence for each in self.patterns) / max(1, len(self.patterns))

    @property
    def uses(self) -> int:
        return sum(each.uses for each in self.patterns)

    @property
    def is_ready(self) -> bool:
        """Whether a skill is made of it."""
        return self.has_enough and self.confidence >= self.least.least_confidence

    @property
    def has_enough(self) -> bool:
        """Whether it has the lessons and the uses of a skill, whatever people think of them."""
        enough = self.uses >= self.least.least_uses
        return enough and len(self.patterns) >= max(1, self.least.least_lessons)


def collect(vault: Vault, built: Collection[str] = ()) -> list[Cluster]:
    """Return the clusters of a vault, by tag. `built` are tags that have a skill.

    A lesson that hooks withhold, or that is not of those whom the user trusts, is in none. Those that a
    skill must not repeat are left out where a skill may come of it. Raises IndexStateError without an
    index.
    """
    by_tag: dict[str, dict[str, UsedLesson]] = {}
    for pattern in sorted(_patterns(vault), key=lambda each: each.id):
        for tag in filter(None, map(tag_name, pattern.tags)):
            by_tag.setdefault(tag, {})[pattern.id] = pattern
    clusters: dict[tuple[str, ...], Cluster] = {}
    for tag in sorted(by_tag, key=lambda name: (name not in built, name)):
        cluster = Cluster(tag, tuple(by_tag[tag].values()), vault.config[SkillsTable])
        clusters.setdefault(tuple(by_tag[tag]), cluster)
    safe = (
        _safe(each) if each.has_enough or each.tag in built else each for each in clusters.values()
    )
    return sorted(safe, key=lambda each: each.tag)


def _patterns(vault: Vault) -> Iterator[UsedLesson]:
    table = vault.open_index().store
    only = filters.Filter(type=TYPE).where()
    rows = table.rows(_COLUMNS, filters.all_of(filters.WHOLE, filters.FOR_AGENTS, *only))
    trusted = allowed.trusted_files(vault, {(row["path"], row["file_hash"]) for row in rows})
    uses = injections.uses(vault.config.home, vault.root)
    for row in rows:
        if (row["path"], row["file_hash"]) in trusted:
            id, title, text = row["lesson_id"], row["title"] or row["lesson_id"], row["text"] or ""
            lists: dict[str, Any] = {name: tuple(row[name] or ()) for name in _LISTS}
            yield UsedLesson(
                id, row["path"], title, text, row["confidence"], uses=uses[id], **lists
            )


def tag_name(tag: str) -> str:
    """Return a tag as the name of a skill may have it: `[a-z0-9-]`; "" where nothing is left."""
    plain = unicodedata.normalize("NFKD", tag).encode("ascii", "ignore").decode().lower()
    name = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")
    return name[: MAX_NAME_CHARS - len(PREFIX)].rstrip("-")


def _safe(cluster: Cluster) -> Cluster:
    """Return a cluster without the lessons that a skill must not repeat.

    A skill goes to colleagues, so it has no lesson that is held back until a person looks at it, whoever
    released it here, and none that somebody noted as no secret. Other warnings do not count: a person saw
    them when they accepted the lesson.
    """
    refused: dict[str, str] = {}
    for each in cluster.patterns:
        text = "\n\n".join([each.title, each.text, *each.fires_on, *each.silent_on])
        found = (*prompt_injection.findings(each.path, text), *secrets.findings(each.path, text))
        reasons = (finding for finding in found if finding.severity == ERROR or finding.holds)
        if first := min(reasons, default=None):
            refused[each.id] = f"{first.rule}: {first.message}"
    patterns = tuple(each for each in cluster.patterns if each.id not in refused)
    return replace(cluster, patterns=patterns, left_out=refused)
