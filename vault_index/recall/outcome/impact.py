"""Compare sessions that were told lessons with those from which chance held them back.

A pair is a lesson and a session to which chance gave it or not (`recall.holdout`); its first injection
counts. `measures` says what followed, from the session's steps and without a model. Pairs are counted in
cells, which are like sessions, so that those of a team add up without saying whose they are.

The mean difference and its spread are those of a Bayesian bootstrap over whole sessions (Rubin, "The
Bayesian bootstrap", Annals of Statistics 9, 1981), each side weighted by its chance, as the share may
change. The interval may be looked at any day and stopped at any result: it is wide enough to be right on
all days together nine times in ten, by the asymptotic confidence sequence of Waudby-Smith, Arbour, Sinha,
Kennedy and Ramdas ("Time-uniform central limit theory", Annals of Statistics 52, 2024, theorem 2.2).
Each outcome has its own interval, and nothing corrects for there being seven.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import asdict, dataclass
from datetime import datetime
from hashlib import blake2b
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from vault_index.recall.outcome import judge
from vault_index.recall.outcome.story import FAILED, RAN, REFUSED, TYPED, WROTE, Step
from vault_index.transcripts import tools, vocabulary

if TYPE_CHECKING:
    from vault_index.recall.outcome.words import Marks

DONE, AGAIN, CORRECTED, FAILURES = "done", "came again", "corrections", "failed calls"
TURNS, MINUTES, REWORKED = "turns to pass", "minutes to pass", "reworked"
MEASURES = (DONE, AGAIN, CORRECTED, FAILURES, TURNS, MINUTES, REWORKED)
SHARES = (DONE, AGAIN, REWORKED)  # of pairs; the others are numbers of each
MAX_MINUTES = 60  # until the checks pass; a session where they never do counts as that
WEEK_DAYS = 7  # in which written lines may be taken out again
LEVEL = 0.9
LEAST = 50  # pairs on either side; before, nothing is said
TUNED_FOR = 500  # sessions at which the interval is as narrow as it gets
DRAWS, SEED = 2_000, 30
FEW = 5  # sessions of a lesson that is named in an export
TOO_FEW = "too few to say"
_REVERTS = ("git revert", "git restore", "git checkout -- ", "git reset --hard", "git stash drop")

Values = list[int | None]  # in the order of MEASURES; None where it does not apply, or not yet
Cell = tuple[float, int, int, int, int]  # share, pairs told, their sum, pairs held back, their sum


# What followed, of a session's steps.


def measures(
    marks: Marks | None, had: Set[str], steps: Sequence[Step], place: int, failure: str, turns: int
) -> Values:
    """Return what followed an injection at a place, but for what a week shows: None at its end."""
    after = judge.turns_after(steps, place, turns)
    keys = Counter(step.key for step in steps[place:] if step.kind == FAILED)
    came_again = keys[failure] > 0 if failure else any(times > 1 for times in keys.values())
    typed = [step.text for step in after if step.kind == TYPED]
    refused = sum(step.kind == REFUSED for step in after)
    done = None if marks is None else judge.is_done(marks, had, after)
    return [
        None if done is None else int(done),
        int(came_again),
        refused + sum(map(vocabulary.corrects, typed)),
        sum(step.kind == FAILED for step in after),
        *_until_checks_pass(after, turns),
        None,
    ]


def _until_checks_pass(after: Sequence[Step], most: int) -> Values:
    """Return the turns and minutes until a check passes; None and None where none ran."""
    turns, has_run, began = 0, False, after[0].at if after else ""
    for step, following in pairwise([*after, Step("", "")]):
        turns += step.kind == TYPED
        if step.kind == RAN and tools.is_check(step.text):
            has_run = True
            if following.kind != FAILED:
                return [turns, min(MAX_MINUTES, round(_seconds(began, step.at) / 60))]
    return [most, MAX_MINUTES] if has_run else [None, None]


def _seconds(began: str, ended: str) -> float:
    try:
        took = datetime.fromisoformat(ended) - datetime.fromisoformat(began)
        return max(0.0, took.total_seconds())  # times go backwards in many transcripts
    except (ValueError, TypeError):
        return 0.0


def reworked(written: Sequence[Step], later: Iterable[Step]) -> int | None:
    """Return whether lines that steps wrote were taken out by them or `later` ones; None without lines.

    To undo a change by git counts, too.
    """
    own: set[str] = set()
    for step in written:
        is_reverted = step.kind == RAN and any(words in step.text for words in _REVERTS)
        if own & step.gone or (own and is_reverted):
            return 1
        own |= step.came if step.kind == WROTE else frozenset()
    if not own:
        return None
    return int(any(own & step.gone for step in later))


# Pairs, and what adds up.


class Pair(NamedTuple):
    """A lesson and a session, and what followed where it was held back or told."""

    session: str
    lesson: str
    share: float
    is_held: bool
    values: Values


@dataclass(frozen=True, slots=True)
class Counts:
    """The cells of each measure with how many sessions each has, and [told, held back] of lessons."""

    cells: Mapping[str, Mapping[Cell, int]]
    lessons: Mapping[str, Sequence[int]]


def count(several: Sequence[Pair]) -> Counts:
    """Count pairs: sessions in which the same followed are one cell."""
    by_session: dict[tuple[str, float], list[Pair]] = defaultdict(list)
    for pair in several:
        by_session[pair.session, pair.share].append(pair)
    cells: dict[str, Counter[Cell]] = defaultdict(Counter)
    for (_, share), same in by_session.items():
        for place, name in enumerate(MEASURES):
            values = [(pair.is_held, pair.values[place]) for pair in same]
            told, held = (
                [value for is_held, value in values if value is not None and is_held is side]
                for side in (False, True)
            )
            if told or held:
                cells[name][share, len(told), sum(told), len(held), sum(held)] += 1
    sides = ((pair.lesson, (not pair.is_held, pair.is_held)) for pair in several)
    return Counts(cells, _summed(sides))


def add(several: Sequence[Counts]) -> Counts:
    """Add counts up, of several people."""
    cells: dict[str, Counter[Cell]] = defaultdict(Counter)
    for each in several:
        for name, own in each.cells.items():
            cells[name].update(own)
    return Counts(cells, _summed(item for each in several for item in each.lessons.items()))


def _summed(several: Iterable[tuple[str, Sequence[int]]]) -> dict[str, list[int]]:
    """Add up how often each lesson was told and held back."""
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for lesson, (told, held) in several:
        sums[lesson][0] += told
        sums[lesson][1] += held
    return dict(sums)


# The difference.


@dataclass(frozen=True, slots=True)
class Difference:
    """A measure of both sides: means, told minus held back, and its interval; None before `LEAST`."""

    measure: str
    told: int
    held: int
    told_mean: float | None
    held_mean: float | None
    difference: float | None = None
    interval: tuple[float, float] | None = None

    @property
    def says(self) -> str:
        """Whether there is more or less of it where lessons were told, or too few cases to say."""
        if self.interval is None or self.interval[0] <= 0 <= self.interval[1]:
            return TOO_FEW
        return "more" if self.interval[0] > 0 else "less"

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {**asdict(self), "says": self.says, "is_share": self.measure in SHARES}


def differences(counts: Counts) -> list[Difference]:
    """Return the difference of each measure."""
    return [difference(name, counts.cells.get(name, {})) for name in MEASURES]


def difference(name: str, cells: Mapping[Cell, int]) -> Difference:
    """Return the difference of a measure by its cells."""
    import numpy as np

    if not cells:
        return Difference(name, 0, 0, None, None)
    order = sorted(cells)
    share, n_told, told, n_held, held = np.array(order, float).T
    sessions = np.array([cells[cell] for cell in order], float)
    # each pair weighs as much as its chance was small; a settled side has weight 0
    by_told, by_held = 1 / (1 - share), 1 / np.maximum(share, 1e-9)
    sides = [(n_told, told, by_told), (n_held, held, by_held)]
    sums = [(float(sessions @ (n * w)), float(sessions @ (s * w))) for n, s, w in sides]
    means = [total / pairs if pairs else None for pairs, total in sums]
    number = [int(sessions @ n_told), int(sessions @ n_held)]
    if min(number) < LEAST or means[0] is None or means[1] is None:
        return Difference(name, number[0], number[1], means[0], means[1])
    weights = np.random.default_rng(SEED).gamma(sessions, size=(DRAWS, len(sessions)))
    drawn = [(weights @ (values * w)) / (weights @ (n * w)) for n, values, w in sides]
    # a side in which a rare thing never came is no surer than the spread of all pairs makes it
    spread = _spread(name, sessions, sides)
    deviations = np.maximum([np.std(each) for each in drawn], spread / np.sqrt(number))
    seen = 7 * float(sessions.sum()) / TUNED_FOR
    holding = math.sqrt(2 * (1 + 1 / seen) * (math.log(seen + 1) / 2 - math.log(1 - LEVEL)))
    reach = holding * max(math.hypot(*deviations), float(np.std(drawn[0] - drawn[1])))
    middle = means[0] - means[1]
    interval = middle - reach, middle + reach
    return Difference(name, number[0], number[1], means[0], means[1], middle, interval)


def _spread(name: str, sessions: Any, sides: Sequence[tuple[Any, Any, Any]]) -> float:
    """Return the spread of a pair's value about the mean of both sides, as far as cells show it."""
    import numpy as np

    n = np.concatenate([side[0] for side in sides])
    values = np.concatenate([side[1] for side in sides]) / np.maximum(n, 1)
    weight = np.concatenate([sessions, sessions]) * n
    mean = float(weight @ values) / float(weight.sum())
    if name in SHARES:
        return math.sqrt(mean * (1 - mean))
    return math.sqrt(float(weight @ (values - mean) ** 2) / float(weight.sum()))


# What leaves the machine, if its user sends it: counts.

VERSION, OTHERS = 1, "others"


def name_of(lesson: str) -> str:
    """Return the name of a lesson in an export, which only a vault that has the lesson can resolve."""
    return blake2b(lesson.encode("utf-8", "replace"), digest_size=6).hexdigest()


def exported(counts: Counts) -> dict[str, Any]:
    """Return counts as JSON values, without a text: a lesson of few sessions is one of the others."""
    lessons = _summed(
        (name_of(lesson) if sum(numbers) >= FEW else OTHERS, numbers)
        for lesson, numbers in counts.lessons.items()
    )
    cells = {
        name: [[*cell, times] for cell, times in sorted(counts.cells[name].items())]
        for name in MEASURES
        if counts.cells.get(name)
    }
    return {"version": VERSION, "cells": cells, "lessons": dict(sorted(lessons.items()))}


def imported(values: Any) -> Counts:
    """Return the counts of an export. Raises ValueError, TypeError or KeyError for anything else."""
    if values["version"] != VERSION:
        raise ValueError(f"version {values['version']}")
    cells: dict[str, dict[Cell, int]] = {}
    for name in MEASURES:
        for share, *numbers in values["cells"].get(name, ()):
            n_told, told, n_held, held, times = map(_whole, numbers)
            if not (0 < share < 1 and times):
                raise ValueError("a cell is wrong")
            cells.setdefault(name, {})[float(share), n_told, told, n_held, held] = times
    lessons = {str(name): [*map(_whole, pair)] for name, pair in values["lessons"].items()}
    if any(len(numbers) != 2 for numbers in lessons.values()):
        raise ValueError("a lesson is wrong")
    return Counts(cells, lessons)


def _whole(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 10**9:
        raise ValueError("a number is wrong")
    return value
