"""How much a piece of text reads like prompt injection: the sum of the weights of its features.

The weights are learned from texts (`python -m benchmarks.train_scorer`). They find orders to an agent
that no pattern describes yet, and tell harmless text that a pattern matches by chance from orders.
"""

from __future__ import annotations

import array
import base64
import functools
import json
from collections.abc import Iterator
from pathlib import Path

from vault_index.check.scorer.features import numbers, pieces, windows

__all__ = ["CERTAIN", "POSSIBLE", "SURE", "SUSPECT", "UNLIKELY", "pieces", "score", "scores"]

# Chosen on notes that the weights were not learned from: of 1,870 one is held back and seven are
# warned of, all patterns together.
SURE = 1.1  # with what signs add, and a sign there is: a lesson waits until a person has looked
CERTAIN = 2.0  # the same, without a sign
SUSPECT = 0.8  # a warning, even if no pattern matches
POSSIBLE = -1.5  # one piece in a hundred; the others are not looked at again
UNLIKELY = 0.15  # a pattern that warns is believed only above


def scores(text: str) -> Iterator[tuple[int, str, float]]:
    """Yield the pieces of a text as it is read, where each begins, and its score.

    Of a piece that may be an attack, two sentences that score higher than the whole come in its place.
    """
    for start, piece in pieces(text):
        here = [(score(piece), start, piece)]
        if here[0][0] > POSSIBLE:
            here += [(score(part), start + index, part) for index, part in windows(piece)]
        best, start, piece = max(here)
        yield start, piece, best


def score(piece: str) -> float:
    """Return the score of a piece of text as it is read; above 0 it is more likely an attack."""
    bias, unit, weights = _model()
    return bias + unit * sum(map(weights.__getitem__, numbers(piece)))


@functools.cache
def _model() -> tuple[float, float, array.array[int]]:
    """Read `weights.json`: what is added to the sum, what a weight is multiplied by, the weights."""
    stored = json.loads((Path(__file__).parent / "weights.json").read_text("utf-8"))
    weights = array.array("b", base64.b64decode(stored["weights"]))
    return stored["bias"], stored["unit"], weights
