"""How far to believe the classifier: a share of evidence -> the probability that it is right.

A share says how much better the best category is than the others, and comes near 1 wherever one is in
front: with three categories, or where one of them has most lessons, it says nothing about being right.
So the curve is fitted to each vault: its own lessons are classified, each as if it were missing, and
a logistic curve is fitted to how often that was right, lessons of categories too small to be learned
included. A vault of few lessons shows little of that: an average of vaults fills in.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

# Measured by cross-validation on three sets of notes, halves and tenths of them, and on 100 vaults of
# 3 to 6 categories, a third of whose new lessons are of subjects that the vault has not.
INTERCEPT, SLOPE = -1.8, 1.0  # of the curve where a vault says nothing
TRUST_INTERCEPT, TRUST_SLOPE = 20.0, 100.0  # how hard it is to move from there
MIN_SHARE, MAX_SHARE = 0.05, 0.98  # beyond, a share says no more: 92% of those were right
ASKED = 600  # lessons at most
_STEPS = 25  # of Newton's method, which needs about six


@dataclass(frozen=True, slots=True)
class Certainty:
    """A logistic curve over the log odds of a share."""

    intercept: float = INTERCEPT
    slope: float = SLOPE

    def of(self, share: float) -> float:
        """Return the probability, 0..1, that what has this share of the evidence is right."""
        share = min(MAX_SHARE, max(MIN_SHARE, share))
        odds = self.intercept + self.slope * math.log(share / (1 - share))
        return 1 / (1 + math.exp(-odds))


def fit(shares: np.ndarray, right: np.ndarray) -> Certainty:
    """Fit the curve to shares, float[n], and whether each was right, bool[n]."""
    import numpy as np

    clipped = np.clip(np.asarray(shares, float), MIN_SHARE, MAX_SHARE)
    given = np.stack([np.ones(len(clipped)), np.log(clipped / (1 - clipped))], axis=1)
    average, trust = np.array([INTERCEPT, SLOPE]), np.diag([TRUST_INTERCEPT, TRUST_SLOPE])
    curve = average
    for _ in range(_STEPS):
        expected = 1 / (1 + np.exp(-given @ curve))
        slope = given.T @ (right - expected) - trust @ (curve - average)
        bend = (given.T * (expected * (1 - expected))) @ given + trust
        curve = curve + np.linalg.solve(bend, slope)
    return Certainty(float(curve[0]), float(curve[1]))


def of_vault(
    vectors: np.ndarray,
    member: np.ndarray,
    neighbours: int,
    shares_of: Callable[[np.ndarray], np.ndarray],
) -> Certainty:
    """Fit the curve to the lessons of a vault, each classified as if it were not there.

    `vectors` float32[n, dimension]; `member` float32[k, n], 1 where a lesson is in a category;
    `shares_of` makes shares of evidence, both float32[m, k].
    """
    import numpy as np

    count = len(vectors)
    asked = np.arange(count)
    if count > ASKED:
        asked = np.sort(np.random.default_rng(0).choice(count, ASKED, replace=False))
    own = vectors[asked]
    cosines = own @ vectors.T
    cosines[np.arange(len(asked)), asked] = -1
    near = np.argsort(-cosines, axis=1, kind="stable")[:, :neighbours]
    weight = np.maximum(np.take_along_axis(cosines, near, 1), 0) ** 2 / neighbours
    sums, mine = member @ vectors, member[:, asked].T
    like = own @ sums.T - mine  # a unit vector adds 1 to the sum of its own category
    squares = (sums**2).sum(1) - mine * (2 * (own @ sums.T) - 1)
    like /= np.sqrt(np.maximum(squares, 1e-9))
    evidence = like + np.einsum("kmn,mn->mk", member[:, near], weight)
    shares = shares_of(evidence)
    best = shares.argmax(axis=1)
    at = np.arange(len(asked))
    return fit(shares[at, best], mine[at, best] > 0)
