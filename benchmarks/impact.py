"""Users whose lessons have a known effect: what `lessons impact` says of them, and how often it is wrong.

    python -m benchmarks.impact [--users 200] [--share 0.1] [--base 0.2]

A session meets one to four lessons. What a lesson advises is done in a share of the pairs that were not
told, and in some sessions more often than in others; to be told adds 0, 5 or 15 points. The report is
read after every 50 pairs, and once it says something the reader stops: that is the worst a reader can do.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from benchmarks import instruments
from benchmarks.instruments import Row
from vault_index.recall import holdout
from vault_index.recall.outcome import impact
from vault_index.recall.outcome.impact import Difference, Pair

EFFECTS = (0.0, 0.05, 0.15)
READ_EVERY, LOOKS = 50, (100, 1_000, 5_000)
BASE, MOST_LESSONS = 0.2, 4
LESSONS = 40


@dataclass
class Seen:
    """The reports on one user."""

    at: dict[int, Difference] = field(default_factory=dict)  # by pairs
    first_claim: str = ""  # of a reader who stops at the first
    is_covered: bool = True  # by every interval that was read


def simulate(
    user: int, effect: float, share: float, pairs: int = max(LOOKS), base: float = BASE
) -> Seen:
    """Return what a reader sees of a user."""
    seen, so_far = Seen(), list[Pair]()
    for pair in _pairs(user, effect, share, base):
        so_far.append(pair)
        if len(so_far) % READ_EVERY == 0:
            said = _report(so_far)
            if said.interval:
                seen.is_covered &= said.interval[0] <= effect <= said.interval[1]
                seen.first_claim = seen.first_claim or said.says.replace(impact.TOO_FEW, "")
            if len(so_far) in LOOKS:
                seen.at[len(so_far)] = said
        if len(so_far) == pairs:
            return seen
    return seen


def _report(pairs: list[Pair]) -> Difference:
    counts = impact.count(pairs)
    return impact.difference(impact.DONE, counts.cells[impact.DONE])


def _pairs(user: int, effect: float, share: float, usual: float) -> Iterator[Pair]:
    random = np.random.default_rng([user, round(1000 * effect)])
    number = 0
    while True:
        session = f"user-{user}-session-{number}"
        number += 1
        base = random.beta(4 * usual, 4 * (1 - usual))  # of this session
        for lesson in random.choice(LESSONS, random.integers(1, MOST_LESSONS + 1), replace=False):
            is_held = holdout.is_held(share, session, f"lesson-{lesson}")
            chance = base if is_held else base + effect * (1 - base) / (1 - usual)
            done = int(random.random() < chance)
            yield Pair(session, f"lesson-{lesson}", share, is_held, [done] + [None] * 6)


def main() -> None:
    """Print what is said after so many pairs, the coverage, and the claims of a reader who stops."""
    options = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    options.add_argument("--users", type=int, default=200)
    options.add_argument("--share", type=float, default=0.1)
    options.add_argument("--base", type=float, default=BASE)
    asked = options.parse_args()
    for effect in EFFECTS:
        list(instruments.shown(rows(effect, asked.users, asked.share, asked.base)))


def rows(effect: float, users: int, share: float, base: float) -> Iterator[Row]:
    """Yield the figures of users with one effect."""
    every = [simulate(user, effect, share, base=base) for user in range(users)]
    of = f"{100 * effect:.0f} points"
    for look in LOOKS:
        said = [seen.at[look] for seen in every]
        wide = [each.interval[1] - each.interval[0] for each in said if each.interval]
        for says in ("more", "less", impact.TOO_FEW):
            yield f"{of}, {look:,} pairs: {says}", sum(each.says == says for each in said), "users"
        yield (
            f"{of}, {look:,} pairs: half of the interval",
            50 * sum(wide) / max(1, len(wide)),
            "points",
        )
    covered = sum(seen.is_covered for seen in every)
    yield f"{of}: every interval of every day has it", covered / users, "of users"
    claims = sum(bool(seen.first_claim) for seen in every)
    yield f"{of}: stops at a first claim", claims / users, "of readers"


if __name__ == "__main__":
    main()
