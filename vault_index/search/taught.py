"""Taught prompts: a lesson fires at the prompts of its `fires_on` and near ones, above any floor.

Near its `silent_on` it stays out, whatever its score. The nearer prompt decides; at equal distance
`silent_on` does. Each taught prompt is a row of the index, searched with the rest in one call.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from vault_index.index.rows import FIRES, SILENT, hash_of_prompt
from vault_index.store import filters

if TYPE_CHECKING:
    import numpy as np

    from vault_index.search.hit import Hit
    from vault_index.store.table import Families, Table

# The cosine from which a prompt is near a taught one. Of 400 pairs by an author who has not seen the
# code, .33 of the paraphrases and .02 of other prompts on the same subject reach it; of 200
# further pairs .36 and .03. At .60 it is .46 and .07, at .80 .21 and 0: MiniLM separates no better, and
# words in common do not help.
NEAR = 0.70
SAME = 0.01  # cosines that differ by less are equal: silence wins


@dataclass(frozen=True, slots=True)
class Taught:
    """The taught prompts that act on a query: row id of a whole -> (cosine, row id of the prompt)."""

    fires: dict[int, tuple[float, int]] = field(default_factory=dict)
    silent: dict[int, tuple[float, int]] = field(default_factory=dict)


def acting(families: Families, ids: np.ndarray, cosines: np.ndarray) -> Taught:
    """Return what acts, of rows uint64[n] with their cosines to the query, float32[n]."""
    import numpy as np

    close = np.flatnonzero(cosines >= NEAR)
    close = close[np.isin(ids[close], families.ids)]
    nearest: dict[str, dict[int, tuple[float, int]]] = {FIRES: {}, SILENT: {}}
    for row, at in zip(close.tolist(), families.ids.searchsorted(ids[close]).tolist(), strict=True):
        kind, whole = str(families.taught[at]), int(families.wholes[at])
        if kind:
            prompt = float(cosines[row]), int(ids[row])
            nearest[kind][whole] = max(prompt, nearest[kind].get(whole, prompt))
    fires, silent = nearest[FIRES], nearest[SILENT]
    return Taught(
        {
            whole: prompt
            for whole, prompt in fires.items()
            if prompt[0] > _cosine(silent, whole) + SAME
        },
        {
            whole: prompt
            for whole, prompt in silent.items()
            if prompt[0] + SAME >= _cosine(fires, whole)
        },
    )


def equal(table: Table, query: str, where: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of prompts that equal a query, uint64[n], and ones, where vectors are missing."""
    import numpy as np

    same = filters.all_of(where, filters.taught_as(hash_of_prompt(query)))
    ids = table.row_ids(same or "")
    return ids, np.ones(len(ids), np.float32)


def nearest_sections(hits: Iterable[Hit]) -> list[Hit]:
    """Return hits so that a prompt in the frontmatter of several sections fires the best of them."""
    best: dict[tuple[str, str], Hit] = {}
    every = list(hits)
    for hit in every:
        if hit.taught:
            key = hit.path, hit.taught_prompt
            best[key] = max(hit, best.get(key, hit), key=lambda each: each.score)
    chosen = {hit.lesson_id for hit in best.values()}
    return [
        replace(hit, score=hit.score - hit.taught, taught=0.0, taught_prompt="")
        if hit.taught and hit.lesson_id not in chosen
        else hit
        for hit in every
    ]


def _cosine(prompts: dict[int, tuple[float, int]], whole: int) -> float:
    return prompts[whole][0] if whole in prompts else -1.0
