"""Search by fixed weights, for those who want it: `[search] weights = "60/30/5/5"`.

Off by default: the sum of evidence finds more (see README, "Tune"). The four weights are of

    vector      1/rank among the candidates by cosine
    full text   1/rank by BM25; 0 for a lesson without a word of the query
    confidence  of 5
    use         how often agents were given it, of the most used candidate

and what is less like the query than `min_similarity`, a cosine, is no hit. The candidates are the best
by the sum of evidence, so many that weights cannot tell the rest apart.

Ranks say nothing of how good the best is, so `score` stays the sum of evidence: floors, `min_score` and
hooks go by it. The weights order what people and agents search for; hooks order as ever, and without
vectors so does a search.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from vault_index.store import injections

if TYPE_CHECKING:
    from vault_index.config import Config
    from vault_index.search.hit import Hit
    from vault_index.vault import Vault

POOL = 200  # candidates
TERMS = ("vector", "full text", "confidence", "use")
MAX_CONFIDENCE = 5


@dataclass(frozen=True, slots=True)
class Weights:
    """Shares of the four terms; together 1."""

    vector: float
    full_text: float
    confidence: float
    use: float


def weights_of(config: Config) -> Weights | None:
    """Return the weights of the settings, which have checked them; None where there are none."""
    if not config.search_weights:
        return None
    numbers = [int(part) for part in config.search_weights.split("/")]
    return Weights(*(number / sum(numbers) for number in numbers))


def order(vault: Vault, candidates: Sequence[Hit]) -> tuple[list[Hit], list[tuple[Hit, str]]]:
    """Return the hits among candidates, best first, and the others with the reason.

    The settings have weights. Hits that score the same are ordered by their ids.
    """
    weights = weights_of(vault.config)
    assert weights is not None
    least = vault.config.search_min_similarity
    hits = [hit for hit in candidates if hit.cosine >= least]
    unlike = [
        (hit, f"less than {least:.2f} like the query") for hit in candidates if hit.cosine < least
    ]
    used = _uses(vault)
    most = max((used[hit.lesson_id] for hit in hits), default=0)
    near = _ranks([hit.cosine for hit in hits])
    words = _ranks([hit.full_text for hit in hits])
    ordered = [
        replace(
            hit,
            weighted=(
                weights.vector / near[at],
                weights.full_text / words[at] if hit.full_text else 0.0,
                weights.confidence * hit.confidence / MAX_CONFIDENCE,
                weights.use * used[hit.lesson_id] / most if most else 0.0,
            ),
        )
        for at, hit in enumerate(hits)
    ]
    return sorted(ordered, key=lambda hit: (-sum(hit.weighted), hit.lesson_id)), unlike


def _ranks(values: Sequence[float]) -> list[int]:
    """Return the place of each value, from 1 for the highest; equal ones share the first."""
    ordered = sorted(values, reverse=True)
    place = {value: number for number, value in reversed(list(enumerate(ordered, start=1)))}
    return [place[value] for value in values]


_known: WeakKeyDictionary[Vault, tuple[tuple[int, ...], Counter[str]]] = WeakKeyDictionary()


def _uses(vault: Vault) -> Counter[str]:
    """Count the uses of each lesson; read again when agents were given more."""
    file = vault.index_dir / injections.FILE
    stamp: tuple[int, ...] = ()
    try:
        found = file.lstat()
        stamp = (found.st_size, found.st_mtime_ns, found.st_ino)
    except OSError:  # nobody was given any
        pass
    known = _known.get(vault)
    if known is None or known[0] != stamp:
        known = _known[vault] = (stamp, injections.uses(vault.index_dir))
    return known[1]
