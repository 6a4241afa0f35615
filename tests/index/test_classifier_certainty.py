"""How sure the classifier says it is: a probability, less in a small vault, none without categories."""

from __future__ import annotations

import numpy as np

from vault_index.index import classifier
from vault_index.index.classifier import Classifier

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


def test_nine_lessons_never_make_it_certain_and_many_make_it_surer() -> None:
    new = near(0, 0.02, np.random.default_rng(2))
    few = judge({"a": 3, "b": 3, "c": 3}, 0.02).classify("", "", new)
    many = judge({"a": 60, "b": 60, "c": 60}, 0.02).classify("", "", new)
    assert few.categories == many.categories == ("a",)
    assert classifier.MIN_CERTAINTY <= few.sure < 0.95
    assert few.sure < many.sure < 1


def test_where_likeness_misleads_it_is_not_believed() -> None:
    """One category dominates, and its lessons are like all others."""
    chance = np.random.default_rng(3)
    vectors = np.stack([near(0, 0.3, chance) for _ in range(80)])
    filed = [["backend" if n % 2 else f"other/{n % 7}"] for n in range(80)]
    misled = Classifier(vectors, filed, ["A lesson"] * 80)
    assert misled.classify("", "", near(0, 0.3, chance)).sure < 0.8


def test_a_phrase_of_a_category_counts_for_the_branch_that_a_vault_has() -> None:
    filed = [["kitchen"]] * classifier.YOUNG_VAULT + [["devops"]]
    known = Classifier(None, filed, ["A lesson"] * len(filed))
    assert known.classify("GitHub Actions runs twice", "", None).categories == ("devops",)
