"""Pieces of long lessons: what each adds to its whole, and which to show."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from vault_index.index.rows import LONG_WHOLE
from vault_index.store import filters

if TYPE_CHECKING:
    import numpy as np

    from vault_index.store.table import Table

# The cosine of a piece of a long lesson counts less than that of a whole, and the best of many pieces
# is higher by chance: its expected maximum is taken off. On a set of 646 notes, two thirds of them long,
# a weight of .8 alone costs recall@3 .02 and recall at 2% false injections .07 against no pieces; .6 and
# .7 cost nothing. On documentation of two frameworks (252 documents, half of them long; 271 headings
# from deep within as prompts) this keeps .72 of them among the first three, .8 alone .76, no pieces .55.
PIECE_WEIGHT = 0.75
CHANCE = 0.03  # about half of the deviation of the cosines of a document's pieces


def chance_of(pieces: np.ndarray) -> np.ndarray:
    """Return what the best of so many pieces, int[n], is expected to gain by chance, float[n].

    It is `CHANCE` times the expected maximum of as many standard normal variables, for which
    sqrt(2 ln n) - 0.6 is right to 0.11 from 2 to 1,000 (Blom's formula: 0.59, 1.55 for 10, 3.23).
    """
    import numpy as np

    expected: np.ndarray = np.sqrt(2 * np.log(np.maximum(pieces, 1))) - 0.6
    chance: np.ndarray = CHANCE * np.maximum(0.0, expected)
    return chance


def with_nearest(
    cosine: np.ndarray,
    shown: np.ndarray,
    pieces: np.ndarray,
    wholes: np.ndarray,
    counts: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the cosines with those of pieces counted for their wholes, and the rows to show.

    `pieces` are places in `cosine` and `shown`, float[rows] and int[rows]; `wholes` those of the
    lessons that they are of, and `counts`, int[rows], how many pieces each lesson has.
    """
    import numpy as np

    order = np.argsort(cosine[pieces])  # the nearest is written last
    pieces, wholes = pieces[order], wholes[order]
    nearest = np.full(len(cosine), -np.inf)
    nearest[wholes] = cosine[pieces]
    nearer = nearest[wholes] > cosine[wholes]
    shown = shown.copy()
    shown[wholes[nearer]] = pieces[nearer]
    return np.maximum(cosine, PIECE_WEIGHT * nearest - chance_of(counts)), shown


def with_texts(table: Table, rows: list[dict[str, Any]], query: str) -> list[dict[str, Any]]:
    """Return rows with the piece that has most words of a query in the place of each long whole."""
    long = [row["lesson_id"] for row in rows if row["position"] == LONG_WHOLE]
    if not long:
        return rows
    words = set(re.findall(r"\w+", query.casefold()))
    best: dict[str, tuple[int, str, int]] = {}
    columns = ("lesson_id", "position", "text")
    for piece in table.rows(columns, filters.pieces_of(long)):
        count = len(words & set(re.findall(r"\w+", piece["text"].casefold())))
        better = (count, piece["text"], piece["position"])
        if count > best.get(piece["lesson_id"], (0,))[0]:
            best[piece["lesson_id"]] = better
    return [
        row | {"text": best[row["lesson_id"]][1], "position": best[row["lesson_id"]][2]}
        if row["position"] == LONG_WHOLE and row["lesson_id"] in best
        else row
        for row in rows
    ]
