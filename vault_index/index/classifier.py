"""A lesson without categories -> proposals, with reasons. No language model.

First phrases that name a category. Then the lesson's vector: near the centroid of a category's lessons,
near single lessons of it, and the category's name in the text; the share of that evidence becomes a
probability by how often such a share is right in this vault (certainty.py). An unsure proposal goes to a
category above, or the lesson stays as it is.

Only lessons whose author or folder says what they are about are learned from, never a proposal.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from vault_index.index import rows
from vault_index.lesson.category import (
    CLASSIFIER,
    DEFAULT_TAXONOMY,
    UNCATEGORIZED,
    CategoryPath,
    normalise,
)
from vault_index.store import filters

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from vault_index.config import Config
    from vault_index.store.table import Table
    from vault_index.vault import Vault

# How far to believe the classifier: a share of evidence -> the probability that it is right.
#
# A share says how much better the best category is than the others, and comes near 1 wherever one is
# in front: with three categories, or where one of them has most lessons, it says nothing about being
# right. So the curve is fitted to each vault: its own lessons are classified, each as if it were
# missing, and a logistic curve is fitted to how often that was right, lessons of categories too small
# to be learned included. A vault of few lessons shows little of that: an average of vaults fills in.
#
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


MAX_CATEGORIES = 3  # categories of a proposal
LEARNED_FROM = 3  # lessons that a category needs before one is said to be like them
MIN_CATEGORIES = 3  # of such, before likeness counts: of one or two, one is always the likest
YOUNG_VAULT = 20  # filed lessons: below that the default phrases hold for categories not used yet

# Found on the evaluation set by five-fold cross-validation, see benchmarks/.
NEIGHBOURS = 10
NAME_IN_TITLE, NAME_IN_TEXT = 0.2, 0.1
TEMPERATURE = 0.06  # of the evidence; how sure its share makes, certainty.py says
MIN_CERTAINTY = 0.5  # for the first category
MIN_LIKENESS = 0.35  # cosine with the lessons of the category: others may be even less like it
MIN_SECOND_SHARE = 0.3  # for the second and third

DEFAULT_KEYWORDS: Mapping[str, CategoryPath] = {
    "ci pipeline": "devops/ci-cd",
    "github actions": "devops/ci-cd",
    "gitlab ci": "devops/ci-cd",
    "jenkins": "devops/ci-cd",
    "docker compose": "devops/docker",
    "docker image": "devops/docker",
    "dockerfile": "devops/docker",
    "helm": "devops/deployment",
    "kubernetes": "devops/deployment",
    "terraform": "devops/deployment",
    "alerting": "devops/monitoring",
    "grafana": "devops/monitoring",
    "prometheus": "devops/monitoring",
    "claude code": "workflow/claude-code",
    "claude.md": "workflow/claude-code",
    "code review": "workflow/code-review",
    "pull request": "workflow/code-review",
    "debugger": "workflow/debugging",
    "stack trace": "workflow/debugging",
    "css": "development/frontend",
    "react component": "development/frontend",
    "rest api": "development/backend",
    "sql": "development/backend",
    "eslint": "development/tooling",
    "linter": "development/tooling",
    "user story": "product-management",
    "roadmap": "product-management",
    "naming convention": "conventions",
    "style guide": "conventions",
}

_WORD = re.compile(r"[^\W_][\w+#]*")
_UNFILED = filters.filed_by(CLASSIFIER, rows.NOBODY)
_FILED = filters.filed_by(rows.AUTHOR, rows.FOLDER)


@dataclass(frozen=True, slots=True)
class Proposal:
    """The probable categories of a lesson, likeliest first, and why. `sure` is 0..1 for the first.

    `categories` is `("uncategorized",)` where nothing is likely enough.
    """

    lesson_id: str
    path: str  # from the vault's root
    title: str
    categories: tuple[CategoryPath, ...]
    sure: float
    why: tuple[str, ...]
    file_hash: str = ""  # of the file that was looked at


class Classification(NamedTuple):
    """The categories of a text, and why. `sure` is 0..1 for the first."""

    categories: tuple[CategoryPath, ...]
    sure: float
    why: tuple[str, ...]


class Classifier:
    """Knows the lessons of a vault by what they were filed under.

    `vectors` float32[n, dimension], or None for phrases alone; `filed` and `titles` are of the same
    n lessons.
    """

    def __init__(
        self,
        vectors: np.ndarray | None,
        filed: Sequence[Sequence[CategoryPath]],
        titles: Sequence[str],
        keywords: Mapping[str, CategoryPath] | None = None,
        taxonomy: Sequence[CategoryPath] = (),
    ) -> None:
        self._titles = titles
        self._counts = Counter(category for many in filed for category in set(many))
        self._keywords = _in_force(self._counts, keywords or {}, taxonomy)
        self._known = sorted(path for path, used in self._counts.items() if used >= LEARNED_FROM)
        self._names = [_plain(path.rpartition("/")[2]) for path in self._known]
        self._vectors = vectors if len(self._known) >= MIN_CATEGORIES else None
        if self._vectors is not None:
            self._learn(self._vectors, filed)

    def _learn(self, vectors: np.ndarray, filed: Sequence[Sequence[CategoryPath]]) -> None:
        import numpy as np

        member = [[category in many for many in filed] for category in self._known]
        self._member = np.array(member, np.float32)
        sums = self._member @ vectors
        self._centroids = sums / np.linalg.norm(sums, axis=1, keepdims=True)
        self._certainty = of_vault(vectors, self._member, NEIGHBOURS, _shares)

    def classify(self, title: str, text: str, vector: np.ndarray | None) -> Classification:
        """Return what a lesson is about. `vector` is its own, float32[dimension]."""
        head, body = _plain(title), _plain(text)
        verdict = self._by_keyword(head, body)
        if verdict is None and vector is not None and self._vectors is not None:
            verdict = self._by_likeness(self._vectors, head, body, vector)
        if verdict is not None:
            return verdict
        too_few = (
            f"fewer than {MIN_CATEGORIES} categories have {LEARNED_FROM} lessons to learn from"
        )
        why = too_few if len(self._known) < MIN_CATEGORIES else "nothing it is like"
        return Classification((UNCATEGORIZED,), 0.0, (why,))

    def _by_keyword(self, head: str, body: str) -> Classification | None:
        """Look for the phrases that name a category: those in the title count first."""
        named: dict[CategoryPath, tuple[int, str]] = {}
        for phrase, category in self._keywords.items():
            plain = _plain(phrase)
            for weight, where, name in ((1000, head, "title"), (1, body, "text")):
                times = where.count(plain) if plain else 0
                if times:
                    score, _ = named.get(category, (0, ""))
                    named[category] = (score + weight * times, f"{phrase!r} is in its {name}")
                    break
        if not named:
            return None
        best = sorted(named, key=lambda path: (-named[path][0], path))[:MAX_CATEGORIES]
        return Classification(tuple(best), 1.0, tuple(f"{path}: {named[path][1]}" for path in best))

    def _by_likeness(
        self, vectors: np.ndarray, head: str, body: str, vector: np.ndarray
    ) -> Classification:
        import numpy as np

        cosines = vectors @ vector
        near = np.argsort(-cosines, kind="stable")[:NEIGHBOURS]
        like = self._centroids @ vector
        score = like + self._member[:, near] @ (np.maximum(cosines[near], 0) ** 2 / NEIGHBOURS)
        for at, name in enumerate(self._names):
            if name and (name in head or name in body):
                score[at] += NAME_IN_TITLE if name in head else NAME_IN_TEXT
        share = _shares(score[None])[0]
        best, *others = np.argsort(-share, kind="stable")
        first, sure = self._known[best], self._certainty.of(float(share[best]))
        why = f"{like[best]:.0%} like the {self._counts[first]} lessons of {first}"
        why += f", and like {self._titles[near[0]]!r:.60}"
        if self._names[best] and self._names[best] in head:
            why += ", and its title names it"
        if like[best] < MIN_LIKENESS:
            return Classification((UNCATEGORIZED,), sure, (f"{why}; that is too little",))
        if sure >= MIN_CERTAINTY:
            beside = others[: MAX_CATEGORIES - 1]
            more = [self._known[at] for at in beside if share[at] >= MIN_SECOND_SHARE]
            return Classification((first, *more), sure, (why, *(f"or {path}" for path in more)))
        above, its_share = _broadest(self._known, share.tolist())
        sure_above = self._certainty.of(its_share)
        if sure_above >= MIN_CERTAINTY:
            return Classification((above,), sure_above, (f"{why}; of {above} at least it is sure",))
        return Classification((UNCATEGORIZED,), sure, (f"{why}; not sure enough ({sure:.0%})",))


def propose(vault: Vault) -> list[Proposal]:
    """Propose categories for the lessons that have none, by id. The index is read as it is.

    Raises IndexStateError without one.
    """
    return _proposals(vault.open_index().store, vault.config)


def of_draft(vault: Vault, title: str, text: str, vector: np.ndarray | None) -> Classification:
    """Return what a lesson that is in no file yet is about. Raises IndexStateError without an index."""
    return _learned(vault.open_index().store, *_settings(vault.config)).classify(
        title, text, vector
    )


def reclassify(table: Table, config: Config) -> int:
    """Write the proposals into the rows of an index, for filters; return the number of rows changed.

    The caller holds the index's lock. Files are never touched.
    """
    before = {
        row["lesson_id"]: (row["categories"], row["filed_by"])
        for row in table.rows(("lesson_id", "categories", "filed_by"), _UNFILED)
    }
    after: dict[str, tuple[list[CategoryPath], str]] = {}
    for proposal in _proposals(table, config) if before else ():
        source = rows.NOBODY if proposal.categories == (UNCATEGORIZED,) else CLASSIFIER
        if before.get(proposal.lesson_id) != (list(proposal.categories), source):
            after[proposal.lesson_id] = list(proposal.categories), source
    changed = [
        rows.with_categories(row, *after[row["lesson_id"]])
        for row in table.rows_of_lessons(sorted(after))
    ]
    if changed:
        table.replace(changed, [])
    return len(changed)


def _proposals(table: Table, config: Config) -> list[Proposal]:
    where = filters.all_of(_UNFILED, filters.WHOLE)
    columns = ("id", "lesson_id", "path", "title", "text", "file_hash")
    unfiled, vectors = table.rows_and_vectors(columns, where)
    if not unfiled:
        return []
    classifier = _learned(table, *_settings(config))
    proposals = []
    for row, vector in zip(
        unfiled, [None] * len(unfiled) if vectors is None else vectors, strict=True
    ):
        verdict = classifier.classify(row["title"], row["text"], vector)
        about = row["lesson_id"], row["path"], row["title"]
        proposals.append(Proposal(*about, *verdict, file_hash=row["file_hash"]))
    return proposals


def _settings(config: Config) -> tuple[tuple[tuple[str, CategoryPath], ...], tuple[str, ...]]:
    return tuple(config.keywords.items()), tuple(config.taxonomy)


@lru_cache(maxsize=1)  # a reader's table stays at its version; of 10,000 lessons it takes a second
def _learned(
    table: Table, keywords: Sequence[tuple[str, CategoryPath]], taxonomy: Sequence[CategoryPath]
) -> Classifier:
    """Return what knows the lessons that somebody filed."""
    where = filters.all_of(_FILED, filters.WHOLE)
    filed, vectors = table.rows_and_vectors(("id", "title", "categories"), where)
    categories = [row["categories"] for row in filed]
    return Classifier(
        vectors, categories, [row["title"] for row in filed], dict(keywords), taxonomy
    )


def _in_force(
    used: Mapping[CategoryPath, int],
    keywords: Mapping[str, CategoryPath],
    taxonomy: Sequence[CategoryPath],
) -> dict[str, CategoryPath]:
    """Return the phrases that hold here: the vault's own, and those default ones that fit its tree."""
    allowed = {normalise(path) for path in taxonomy} | set(used)
    if not taxonomy and sum(used.values()) < YOUNG_VAULT:
        allowed |= set(DEFAULT_TAXONOMY)
    chosen = {phrase: path for phrase, path in DEFAULT_KEYWORDS.items() if path in allowed}
    own = {phrase: normalise(path) for phrase, path in keywords.items()}
    return chosen | {phrase: path for phrase, path in own.items() if path}


def _shares(evidence: np.ndarray) -> np.ndarray:
    """Return the share that each category has of the evidence, both float32[lessons, categories]."""
    import numpy as np

    share = np.exp((evidence - evidence.max(axis=1, keepdims=True)) / TEMPERATURE)
    return np.asarray(share / share.sum(axis=1, keepdims=True))


def _broadest(known: Sequence[CategoryPath], shares: Sequence[float]) -> tuple[CategoryPath, float]:
    """Return the top category whose lessons, all below it together, are likeliest, and its share."""
    total: defaultdict[CategoryPath, float] = defaultdict(float)
    for category, share in zip(known, shares, strict=True):
        total[category.split("/")[0]] += share
    return max(total.items(), key=lambda each: each[1])


def _plain(text: str) -> str:
    """Return the words of a text, in small letters, each between blanks: ` github actions `."""
    words = _WORD.findall(text.lower())
    return f" {' '.join(words)} " if words else ""
