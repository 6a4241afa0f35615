"""One lesson of those that say the same: the newest takes the place of the others.

They say the same if `lessons check` reports them as near-duplicates and title or text is equal, if both
were found and are nearly equal, or if one says to supersede the other. An older lesson never comes while
the newer one may: a withheld or untrusted one replaces nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from vault_index.lesson.file import hash_of
from vault_index.search.hit import Hit
from vault_index.search.taught import DUPLICATE_COSINE
from vault_index.store import filters, schema

if TYPE_CHECKING:
    from vault_index.vault import Vault

Keep = Callable[["Vault", list[Hit]], list[Hit]]
_NEARLY_EQUAL = 0.95  # cosine; titles and texts in which a word differs have 0.97
MAX_STEPS = 8  # from a lesson to what supersedes it, and on


def only(vault: Vault, hits: Iterable[Hit], keep: Keep) -> list[Hit]:
    """Return hits in their order, each once and as its newest. `keep` returns what an agent may get."""
    every = list(hits)
    if not every:
        return []
    newer = _superseding(vault)
    chosen: dict[str, Hit] = {}
    for hit in every:
        best = _replaced(vault, _newest_like(vault, hit, keep), newer, keep)
        chosen.setdefault(best.lesson_id, best)
    return _one_of_each(vault, [*chosen.values()])


def _one_of_each(vault: Vault, hits: list[Hit]) -> list[Hit]:
    """Return hits without those that are nearly equal to a better one; the newest is in its place."""
    if len(hits) < 2:
        return hits
    vectors = vault.open_index().store.of_lessons([hit.lesson_id for hit in hits])
    kept: list[Hit] = []
    for hit in hits:
        like = next((at for at, each in enumerate(kept) if _are_alike(vectors, each, hit)), None)
        if like is None:
            kept.append(hit)
        else:
            newest = min(kept[like], hit, key=lambda each: _order(vault, each))
            kept[like] = replace(newest, **_evidence(kept[like]))
    return kept


def _are_alike(vectors: Mapping[str, Any], one: Hit, other: Hit) -> bool:
    here, there = vectors.get(one.lesson_id), vectors.get(other.lesson_id)
    return here is not None and there is not None and bool(here @ there >= _NEARLY_EQUAL)


def _newest_like(vault: Vault, hit: Hit, keep: Keep) -> Hit:
    """Return the newest of the lessons that say the same as a hit, in its place."""
    store, (keys, ids) = vault.open_index().store, _by_words(vault)
    named = {id for key in keys.get(hit.lesson_id, ()) for id in ids[key]} - {hit.lesson_id}
    if not named:
        return hit
    vectors = store.of_lessons([hit.lesson_id, *named])
    here = vectors.get(hit.lesson_id)
    same = [id for id in named if here is None or vectors[id] @ here >= DUPLICATE_COSINE]
    if not same:
        return hit
    where = filters.all_of(filters.FOR_AGENTS, filters.wholes_of(same))
    others = _others(vault, hit, store.rows(schema.LESSONS.shown, where), keep)
    return min([hit, *others], key=lambda each: _order(vault, each))


def _by_words(vault: Vault) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Return the keys of each lesson, its title and its text, folded; and the lessons of each key."""
    store = vault.open_index().store

    def read() -> tuple[dict[str, list[str]], dict[str, list[str]]]:
        keys: dict[str, list[str]] = {}
        ids: dict[str, list[str]] = {}
        for row in store.rows(("lesson_id", "title", "text"), filters.WHOLE):
            keys[row["lesson_id"]] = [
                " ".join(row["title"].casefold().split()),
                hash_of(row["text"]),
            ]
            for key in keys[row["lesson_id"]]:
                ids.setdefault(key, []).append(row["lesson_id"])
        return keys, ids

    return store.once("same words", read)


def _replaced(vault: Vault, hit: Hit, newer: Mapping[str, str], keep: Keep) -> Hit:
    seen: set[str] = set()
    for _ in range(MAX_STEPS):
        id = newer.get(hit.lesson_id.casefold()) or newer.get(hit.title.casefold())
        if id is None or id in seen or id == hit.lesson_id:
            break
        seen.add(id)
        where = filters.all_of(filters.FOR_AGENTS, filters.wholes_of([id]))
        rows = vault.open_index().store.rows(schema.LESSONS.shown, where)
        there = _others(vault, hit, rows, keep)
        if not there:
            break
        hit = there[0]
    return hit


def _others(vault: Vault, hit: Hit, rows: Iterable[Mapping[str, Any]], keep: Keep) -> list[Hit]:
    """Return the hits of rows that an agent may get, with the evidence of the hit they replace."""
    scores = _evidence(hit)
    return keep(vault, [
        replace(Hit.of_lesson(row), **scores) for row in rows if row["lesson_id"] != hit.lesson_id
    ])  # fmt: skip


def _evidence(hit: Hit) -> dict[str, Any]:
    return {name: getattr(hit, name) for name in _SCORES}


_SCORES = (
    *("score", "cosine", "full_text", "exact", "no_reason", "taught", "taught_prompt"),
    *("lead", "common", "as_line"),
)


def _order(vault: Vault, hit: Hit) -> tuple[float, int, str]:
    """Return what orders lessons that say the same: the newest first, then that with the plainer name."""
    changed = hit.updated_at or hit.created_at
    when = changed.timestamp() if changed else 0.0
    if not changed:  # not committed yet
        with suppress(OSError):
            when = (vault.root / hit.path).stat().st_mtime
    return -when, len(hit.path), hit.path


def _superseding(vault: Vault) -> dict[str, str]:
    store = vault.open_index().store

    def read() -> dict[str, str]:
        where = filters.all_of(filters.WHOLE, filters.FOR_AGENTS, filters.SUPERSEDES)
        return {
            name.casefold(): row["lesson_id"]
            for row in store.rows(("lesson_id", "supersedes"), where)
            for name in row["supersedes"]
        }

    return store.once("superseding", read)
