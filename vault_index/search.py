"""A query -> hits, with the evidence for each.

The score is `cosine + 0.01 x BM25`, a plain sum of evidence in absolute units: measured on the
evaluation set it ranks better than either alone and than reciprocal rank fusion, which also throws
away the magnitude that the floor needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from vault_index import categories as tree
from vault_index import store
from vault_index.errors import EmbedderError, VaultError
from vault_index.hit import Hit
from vault_index.lesson import DEFAULT_CONFIDENCE
from vault_index.manifest import NO_EMBEDDER

if TYPE_CHECKING:
    import numpy as np

    from vault_index.vault import OpenIndex, Vault

FULL_TEXT_WEIGHT = 0.01  # of LanceDB's _score
CANDIDATES = 16  # passages, at least, whose lessons are looked at
EXPLAINED = 64  # when it is to be told what was left out
MOST_SCORED = 50_000  # passages that each side scores: up to there the ranking is exact
CONFIDENCE_STEP = 0.025  # confidence 5 or 1 moves a hit by 5%, among hits only
MAX_QUERY_CHARS = 4000  # what is pasted after that says little about what is asked

KINDS = ("lessons",)


@dataclass(frozen=True, slots=True)
class Results:
    """What a search found. `dropped` are (hit, why it is not in the answer), best first."""

    hits: list[Hit]
    dropped: list[tuple[Hit, str]] = field(default_factory=list)
    text_only: str = ""  # why only full text was searched, if so


def find(
    vault: Vault,
    query: str,
    k: int = 5,
    categories: Sequence[str] = (),
    min_score: float | None = None,
    kinds: Sequence[str] = KINDS,
) -> list[Hit]:
    """Find up to `k` lessons for a query, best first, one hit a lesson.

    `categories` narrows to lessons in or below any of these paths, before the search. The index is
    read as it is: `index.sync` brings it up to date. Raises IndexStateError without an index.
    """
    return run(vault, query, k, categories, min_score, kinds).hits


def run(
    vault: Vault,
    query: str,
    k: int = 5,
    categories: Sequence[str] = (),
    min_score: float | None = None,
    kinds: Sequence[str] = KINDS,
    *,
    text_only: bool = False,
    explain: bool = False,
) -> Results:
    """Do what `find` does and tell whether vectors were searched; to `explain`, what was dropped."""
    unknown = sorted(set(kinds) - set(KINDS))
    if unknown:
        raise VaultError(
            f"there is nothing of kind {unknown[0]!r} here", f"kinds: {', '.join(KINDS)}"
        )
    opened = vault.open_index()
    asked = query.encode("utf-8", "replace").decode()  # half a character is no text for LanceDB
    asked = asked.strip()[:MAX_QUERY_CHARS]
    paths = [path for path in map(tree.normalise, categories) if path]
    if categories and not paths:
        raise VaultError(f"not a category: {categories[0]!r}", "for example: devops/ci-cd")
    where = store.below(paths) or None
    vector, why = (None, "asked for") if text_only else _query_vector(vault, opened, asked)
    limit = max(EXPLAINED if explain else CANDIDATES, 4 * k)
    least = None if explain else min_score
    best = _best_per_lesson(_candidates(opened.store, asked, vector, limit, where, least))
    hits: list[Hit] = []
    dropped: list[tuple[Hit, str]] = []
    for hit in best:
        if min_score is not None and hit.score < min_score:
            dropped.append((hit, f"below {min_score:.3f}"))
        elif len(hits) < k:
            hits.append(hit)
        else:
            dropped.append((hit, f"not among the first {k}"))
    return Results(hits, dropped, why)


def rank(hit: Hit) -> float:
    """Give what hits are ordered by: the score, moved by up to 5% by the author's confidence."""
    return hit.score * (1 + CONFIDENCE_STEP * (hit.confidence - DEFAULT_CONFIDENCE))


def _query_vector(vault: Vault, opened: OpenIndex, query: str) -> tuple[np.ndarray | None, str]:
    """Embed a query for this index; None, with the reason, if that cannot be done."""
    if opened.embedder == NO_EMBEDDER:
        return None, "the index has no vectors"
    if not query:
        return None, ""
    try:
        embedder = vault.embedder
        if embedder is None or embedder.name != opened.embedder:
            now = embedder.name if embedder else "none"
            return None, f"the index was built with {opened.embedder}, the embedder is {now}"
        vector = embedder.embed_query(query)
    except EmbedderError as error:
        return None, error.message
    if len(vector) != opened.store.dimension:
        return None, f"{opened.embedder} changed its dimension; run `lessons index --rebuild`"
    return vector, ""


def _candidates(
    table: store.Store,
    query: str,
    vector: np.ndarray | None,
    limit: int,
    where: str | None,
    least: float | None,
) -> list[Hit]:
    """Score every passage on both sides; give the best `limit` that score `least`, with evidence."""
    import numpy as np

    none = np.empty(0, np.uint64), np.empty(0, np.float32)
    near, cosines = none if vector is None else table.nearest(vector, MOST_SCORED, where)
    matched, scores = table.matches(query, MOST_SCORED, where) if query else none
    ids = np.union1d(near, matched)
    # what is not among the nearest is no nearer than the last of them
    cosine = np.full(len(ids), cosines.min() if len(near) == MOST_SCORED else 0.0)
    cosine[np.searchsorted(ids, near)] = cosines
    text = np.zeros(len(ids))
    text[np.searchsorted(ids, matched)] = FULL_TEXT_WEIGHT * scores
    score = cosine + text
    best = np.argsort(-score, kind="stable")[:limit]
    if least is not None:
        best = best[score[best] >= least]
    rows = table.take(ids[best].tolist())
    return [
        _hit(row, float(cosine[at]), float(text[at])) for row, at in zip(rows, best, strict=True)
    ]


def _hit(row: dict[str, Any], cosine: float, full_text: float) -> Hit:
    values = {name: row[name] for name in row if name != "id" and not name.startswith("_")}
    values |= {name: tuple(row[name] or ()) for name in ("categories", "tags")}
    return Hit(**values, score=cosine + full_text, cosine=cosine, full_text=full_text)


def _best_per_lesson(hits: list[Hit]) -> list[Hit]:
    """Keep the best passage of each lesson, best first; equal ones by id, so that order is fixed."""
    best: dict[str, Hit] = {}
    for hit in sorted(hits, key=lambda hit: (-rank(hit), hit.lesson_id)):
        best.setdefault(hit.lesson_id, hit)
    return list(best.values())
