"""One lesson of those that say the same: the newest takes the place of the others.

They say the same if `lessons check` reports them as near-duplicates and title or text is equal, or if one
says to supersede the other. An older lesson never comes while the newer one may: a withheld or
untrusted one replaces nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from vault_index.lesson import passages
from vault_index.search.hit import Hit
from vault_index.search.taught import DUPLICATE_COSINE, is_same
from vault_index.store import filters, schema

if TYPE_CHECKING:
    import numpy as np

    from vault_index.vault import Vault

Keep = Callable[["Vault", list[Hit]], list[Hit]]
MAX_STEPS = 8  # from a lesson to what supersedes it, and on


def only(vault: Vault, hits: Iterable[Hit], keep: Keep) -> list[Hit]:
    """Return hits in their order, each once and as its newest. `keep` returns what an agent may get."""
    every = list(hits)
    if not every:
        return []
    store = vault.open_index().store
    vectors = store.of_lessons([hit.lesson_id for hit in every])
    newer = _superseding(vault)
    chosen: dict[str, Hit] = {}
    for hit in every:
        best = _replaced(
            vault, _newest_like(vault, hit, vectors.get(hit.lesson_id), keep), newer, keep
        )
        chosen.setdefault(" ".join(f"{best.title} {best.text}".casefold().split()), best)
    unique: dict[str, Hit] = {}
    for hit in chosen.values():
        unique.setdefault(hit.lesson_id, hit)
    return list(unique.values())


def _newest_like(vault: Vault, hit: Hit, vector: np.ndarray | None, keep: Keep) -> Hit:
    """Return the newest of the lessons that say the same as a hit, in its place."""
    if vector is None:
        return hit
    store = vault.open_index().store
    places = (store.cosines(vector) >= DUPLICATE_COSINE).nonzero()[0]
    if len(places) < 2:
        return hit
    wholes = [row for row in store.take(places) if row["is_whole"]]
    here = [row for row in wholes if row["lesson_id"] == hit.lesson_id]
    rows = [row for row in wholes if not row["withheld"] and here and is_same(here[0], row)]
    return min([hit, *_others(vault, hit, rows, keep)], key=lambda each: _order(vault, each))


def _replaced(vault: Vault, hit: Hit, newer: Mapping[str, str], keep: Keep) -> Hit:
    """Return what supersedes a hit, in its place; the hit itself if nothing does that may come."""
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
    scores = {name: getattr(hit, name) for name in _SCORES}
    return keep(vault, [
        replace(Hit.of_lesson(row), **scores) for row in rows if row["lesson_id"] != hit.lesson_id
    ])  # fmt: skip


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
    """Return the ids of lessons by the names, folded, of those that they say to supersede."""
    store = vault.open_index().store

    def read() -> dict[str, str]:
        where = filters.all_of(filters.PASSAGES, filters.FOR_AGENTS, filters.RELATED)
        return {
            name.casefold(): row["lesson_id"]
            for row in store.rows(("lesson_id", "text"), where)
            for kind, name in passages.parts_of(row["text"]).related
            if kind == passages.SUPERSEDES
        }

    return store.once("superseding", read)
