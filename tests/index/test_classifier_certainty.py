"""How sure the classifier says it is: a probability, less in a small vault, none without categories."""

from __future__ import annotations

import numpy as np
import pytest

from vault_index.index import classifier
from vault_index.index.classifier import Certainty, Classifier
from vault_index.lesson.category import UNCATEGORIZED

DIMENSION = 24


def near(subject: int, spread: float, chance: np.random.Generator) -> np.ndarray:
    """Return a unit vector about one of the subjects."""
    vector = chance.normal(size=DIMENSION) * spread
    vector[subject] += 1
    return np.asarray(vector / np.linalg.norm(vector), np.float32)


def judge(counts: dict[str, int], spread: float) -> Classifier:
    """Return a classifier that learned so many lessons of each category."""
    chance = np.random.default_rng(1)
    filed = [[name] for name, count in counts.items() for _ in range(count)]
    subjects = [at for at, count in enumerate(counts.values()) for _ in range(count)]
    vectors = np.stack([near(subject, spread, chance) for subject in subjects])
    return Classifier(vectors, filed, ["A lesson"] * len(filed))


@pytest.mark.parametrize(
    "counts", [{"backend": 3}, {"backend": 30, "frontend": 3}, {"a": 2, "b": 2, "c": 2, "d": 9}]
)
def test_with_fewer_than_three_learned_categories_likeness_says_nothing(
    counts: dict[str, int],
) -> None:
    said = judge(counts, 0.05).classify("", "", near(0, 0.05, np.random.default_rng(2)))
    assert said.categories == (UNCATEGORIZED,)
    assert said.sure == 0
    assert said.why == ("fewer than 3 categories have 3 lessons to learn from",)


def test_a_phrase_needs_no_learned_category() -> None:
    said = Classifier(None, [], [], {"heron": "payments"}).classify("Heron is slow", "", None)
    assert said.categories == ("payments",)


def test_nine_lessons_never_make_it_certain_and_many_make_it_surer() -> None:
    new = near(0, 0.02, np.random.default_rng(2))
    few = judge({"a": 3, "b": 3, "c": 3}, 0.02).classify("", "", new)
    many = judge({"a": 60, "b": 60, "c": 60}, 0.02).classify("", "", new)
    assert few.categories == many.categories == ("a",)
    assert classifier.MIN_CERTAINTY <= few.sure < 0.95
    assert few.sure < many.sure < 1


def test_where_likeness_misleads_it_is_not_believed() -> None:
    """One category dominates, and its lessons are like those of all others."""
    chance = np.random.default_rng(3)
    vectors = np.stack([near(0, 0.3, chance) for _ in range(80)])
    filed = [["backend" if n % 2 else f"other/{n % 7}"] for n in range(80)]
    misled = Classifier(vectors, filed, ["A lesson"] * 80)
    assert misled.classify("", "", near(0, 0.3, chance)).sure < 0.8


def test_the_curve_follows_what_was_right() -> None:
    chance = np.random.default_rng(4)
    shares = chance.uniform(0.1, 0.97, 4000)
    true = np.where(shares > 0.5, shares - 0.25, shares / 2)
    curve = classifier.fit(shares, chance.uniform(size=4000) < true)
    for low in np.arange(0.2, 0.9, 0.1):
        some = (shares >= low) & (shares < low + 0.1)
        said = np.mean([curve.of(float(share)) for share in shares[some]])
        assert said == pytest.approx(true[some].mean(), abs=0.08)


def test_without_lessons_the_average_of_vaults_holds() -> None:
    assert classifier.fit(np.empty(0), np.empty(0, bool)) == Certainty()
    assert Certainty().of(1.0) == Certainty().of(classifier.MAX_SHARE) < 0.95
    assert Certainty().of(0.5) < 0.2


def test_each_lesson_is_asked_about_as_if_it_were_not_there() -> None:
    """A category whose lessons are like nothing, not even each other, is never recognised."""
    vectors = np.eye(DIMENSION, dtype=np.float32)[:9]
    member = np.zeros((3, 9), np.float32)
    for number in range(9):
        member[number // 3, number] = 1

    def shares(evidence: np.ndarray) -> np.ndarray:
        assert evidence[np.arange(9), np.arange(9) // 3] == pytest.approx(np.zeros(9), abs=1e-5)
        return np.full_like(evidence, 1 / 3)

    classifier.of_vault(vectors, member, 4, shares)
