"""A lesson without categories -> proposals, with reasons. No language model.

First phrases that name a category: the vault's own, and those that the package has for the default
tree, in a title. Then how near the lesson is to each category: to its name, to its lessons together, to
the nearest of them, and whether the text names it. A sum of these, with weights learned from sets of
notes, gives each category a probability, and "none of them" one, too. A curve corrects these. If that is
unsure, the package's phrases count in the text, too, or the branch above is proposed, or nothing.

Only lessons whose author or folder says what they are about are learned from, never a proposal.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from vault_index.errors import EmbedderError
from vault_index.index import rows
from vault_index.lesson import passages
from vault_index.lesson.category import (
    CLASSIFIER,
    DEFAULT_TAXONOMY,
    UNCATEGORIZED,
    CategoryPath,
    normalise,
    prefixes,
)
from vault_index.store import filters
from vault_index.text.blocks import one_line
from vault_index.text.words import count

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from vault_index.config import Config
    from vault_index.store.lance import Table
    from vault_index.vault import Vault

    Embed = Callable[[Sequence[str]], np.ndarray]

# How far to believe a probability: a logistic curve over its log odds. In vaults of 20, 40, 200 and 1,720
# real notes it places .45, .57, .72 and .78 of new ones; .76, .76, .81 and .87 of these are right, and it
# says .79, .80, .81 and .84.
INTERCEPT, SLOPE = 0.25, 0.8
MIN_SHARE, MAX_SHARE = 0.05, 0.98  # beyond, a probability says no more
MAX_CATEGORIES = 3  # categories of a proposal
YOUNG_VAULT = 10  # lessons of a tree of its own: below that the default tree is in use
SHORT_PHRASE = 3  # letters: many texts have `CI` in passing, titles and first sentences seldom
SURE_BY_TEXT = 0.6  # of a default phrase in the text: right for 6 of 10 lessons of this project
MIN_CERTAINTY = 0.5  # for the first category
MIN_SECOND_SHARE = 0.3  # for the second and third
# Of another category than the one that a draft names. Of 281 notes in 76 categories 3% of those in their
# own were said to be nearer to another, and half of those in a wrong one: 9 of 10 times the right one.
NEARER, TIMES_NEARER = 0.8, 5

# What each part of the evidence weighs: a conditional logit with "none of them" as one more choice,
# learned from three sets of notes at 5 to 1,500 lessons, with and without a taxonomy. Votes of the ten
# nearest lessons and the number of categories were parts of it, and changed no figure by more than .03.
#
# Of a category: the cosine with its lessons together and with the nearest of them; the cosine with its
# name; whether title or text name it; the logarithm of its lessons; if it has none, more for its name.
WEIGHTS = (4.02, 4.5, 7.69, 2.81, 2.08, 0.24, 6.19)
# Of none: a constant; the log odds of a category with a single lesson, since these foretell new ones; the
# best cosine with a lesson; whether the user named a taxonomy.
NONE_WEIGHTS = (4.65, 0.2, 3.0, -2.4)
MIN_SINGLE, MAX_SINGLE = 0.005, 0.9

DEFAULT_PHRASES: Mapping[CategoryPath, str] = {
    "devops/ci-cd": "ci, ci pipeline, github actions, gitlab ci, jenkins",
    "devops/docker": "docker compose, docker image, dockerfile",
    "devops/deployment": "helm, kubernetes, terraform",
    "devops/monitoring": "alerting, grafana, prometheus",
    "workflow/claude-code": "claude code, claude.md",
    "workflow/code-review": "code review, pull request",
    "workflow/debugging": "debugger, stack trace",
    "development/frontend": "css, react component",
    "development/backend": "rest api, sql",
    "development/tooling": "eslint, linter",
    "product-management": "jira, user story, roadmap",
    "conventions": "naming convention, style guide",
}

_WORD = re.compile(r"[^\W_][\w+#]*")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s|\n\s*\n")
_UNFILED = filters.any_of("filed_by", (CLASSIFIER, rows.NOBODY))
_FILED = filters.any_of("filed_by", (rows.AUTHOR, rows.FOLDER))


@dataclass(frozen=True, slots=True)
class ProbableCategories:
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

    `vectors` float32[n, dimension], or None for phrases alone; `filed` and `titles` are of the same n
    lessons. `embed` makes vectors of the names of categories.
    """

    def __init__(
        self,
        vectors: np.ndarray | None,
        filed: Sequence[Sequence[CategoryPath]],
        titles: Sequence[str],
        keywords: Mapping[str, CategoryPath] | None = None,
        taxonomy: Sequence[CategoryPath] = (),
        embed: Embed | None = None,
    ) -> None:
        self._titles = titles
        self._counts = Counter(category for many in filed for category in set(many))
        self._phrases = _in_force(self._counts, keywords or {}, taxonomy)
        declared, self._is_declared = _declared(self._counts, taxonomy)
        used = sorted(self._counts)
        empty = sorted(declared - set(used) if embed else ())
        self._categories: list[CategoryPath] = [*used, *empty]
        self._names = [_plain(path.rpartition("/")[2]) for path in self._categories]
        self._vectors = vectors if self._categories else None
        if self._vectors is not None:
            self._learn(self._vectors, filed, embed)

    def _learn(
        self, vectors: np.ndarray, filed: Sequence[Sequence[CategoryPath]], embed: Embed | None
    ) -> None:
        import numpy as np

        member = [[category in many for many in filed] for category in self._categories]
        self._member = np.array(member, np.float32).reshape(len(self._categories), len(filed))
        sums = self._member @ vectors
        self._together = sums / np.sqrt(np.maximum((sums**2).sum(1), 1e-9))[:, None]
        used = self._member[: len(self._counts)]
        self._of_category = np.nonzero(used)[1]  # the lessons of each, one category after another
        self._starts = np.cumsum([0, *used.sum(1)])[:-1].astype(int)
        self._name_vectors = np.zeros((len(self._categories), vectors.shape[1]), np.float32)
        if embed is not None:
            descriptions = tuple(_described(path, self._phrases.all()) for path in self._categories)
            with suppress(EmbedderError):  # a server that embeds may be away
                self._name_vectors = _embedded(embed, descriptions)

    def _shares(self, cosines: np.ndarray, vector: np.ndarray, head: str, body: str) -> np.ndarray:
        """Return the probability of each category for a lesson, float[k].

        `cosines` float32[n] are those with the vault's lessons.
        """
        import numpy as np

        counts = self._member.sum(1)
        nearest = np.zeros(len(counts))
        if len(self._starts):
            of_each = np.maximum.reduceat(cosines[self._of_category], self._starts)
            nearest[: len(self._starts)] = of_each
        named = self._name_vectors @ vector
        in_title = np.array([name != "" and name in head for name in self._names], bool)
        in_text = np.array([name != "" and name in body for name in self._names], bool) & ~in_title
        parts = (
            *(self._together @ vector, nearest, named, in_title, in_text),
            *(np.log(np.maximum(counts, 1)), (counts < 1) * named),
        )
        score = sum(part * each for part, each in zip(parts, WEIGHTS, strict=True))
        scores = np.append(score, self._none(cosines))
        odds = np.exp(scores - scores.max())
        return np.asarray(odds[:-1] / odds.sum())

    def _none(self, cosines: np.ndarray) -> float:
        """Return the score of "none of them"."""
        count = len(cosines)
        single = sum(times == 1 for times in self._counts.values()) / count if count else 1
        single = min(MAX_SINGLE, max(MIN_SINGLE, single))
        fixed, odds, lesson, declared = NONE_WEIGHTS
        of_vault = fixed + odds * math.log(single / (1 - single)) + declared * self._is_declared
        return float(of_vault + lesson * cosines.max(initial=-1 if count else 0))

    def classify(self, title: str, text: str, vector: np.ndarray | None) -> Classification:
        """Return the categories of a lesson. `vector` is its own, float32[dimension]."""
        head, body = _plain(title), _plain(text)
        of_vault, used, declared = self._phrases
        verdict = _by_phrase(of_vault, head, body) or _by_phrase(used, head)
        if verdict is not None:
            return verdict
        unsure = Classification((UNCATEGORIZED,), 0.0, (_why_none(vector),))
        if vector is not None and self._vectors is not None:
            unsure = self._by_likeness(self._vectors @ vector, vector, head, body)
            if unsure.sure >= MIN_CERTAINTY:
                return unsure
        named = _by_phrase(declared, head) or _by_phrase(used, "", *_prose(text))
        return named._replace(sure=SURE_BY_TEXT) if named else unsure

    def nearer(self, category: CategoryPath, title: str, text: str, vector: np.ndarray) -> str:
        """Return a category that a text clearly fits better than its own, by the lessons of both.

        "" without one, for a category that has no lessons, and for one of the same branch.
        """
        if self._vectors is None or not self._counts[category]:
            return ""
        share = self._shares(self._vectors @ vector, vector, _plain(title), _plain(text))
        best = int(share.argmax())
        first, own_share = self._categories[best], float(share[self._categories.index(category)])
        is_clear = (
            share[best] > TIMES_NEARER * own_share and _certainty(float(share[best])) >= NEARER
        )
        return first if is_clear and not _is_related(first, category) else ""

    def _by_likeness(
        self, cosines: np.ndarray, vector: np.ndarray, head: str, body: str
    ) -> Classification:
        import numpy as np

        share = self._shares(cosines, vector, head, body)
        best, *others = np.argsort(-share, kind="stable")
        first, sure = self._categories[best], _certainty(float(share[best]))
        why = self._reason(int(best), cosines)
        if self._names[best] and self._names[best] in head:
            why += ", and its title names it"
        if sure >= MIN_CERTAINTY:
            beside = others[: MAX_CATEGORIES - 1]
            more = [self._categories[at] for at in beside if share[at] >= MIN_SECOND_SHARE]
            return Classification((first, *more), sure, (why, *(f"or {path}" for path in more)))
        branch, its_share = self._branch(share.tolist())
        if branch:
            reason = f"{why}; of {branch} at least it is sure"
            return Classification((branch,), _certainty(its_share), (reason,))
        why = f"{first} is nearest, and less likely than not"
        return Classification((UNCATEGORIZED,), 0.0, (why,))

    def _reason(self, best: int, cosines: np.ndarray) -> str:
        """Return the nearness of a lesson to a category in words, and the lesson of the vault for it."""
        first, filed = self._categories[best], self._counts[self._categories[best]]
        if not filed:
            return f"like the name of {first}"
        nearness = cosines[self._member[best] > 0]
        nearest = one_line(self._titles[int(cosines.argmax())], 60)
        likeness = f"{nearness.max():.0%} like the {count(filed, 'lesson')} of {first}"
        return f"up to {likeness}, and like {nearest!r}"

    def _branch(self, shares: Sequence[float]) -> tuple[CategoryPath, float]:
        """Return the deepest branch that is likely enough with all below it, and its share; or ""."""
        total: defaultdict[CategoryPath, float] = defaultdict(float)
        for category, share in zip(self._categories, shares, strict=True):
            for path in prefixes(category):
                total[path] += share
        likely = [path for path in total if _certainty(total[path]) >= MIN_CERTAINTY]
        branch = max(likely, key=lambda path: (path.count("/"), total[path]), default="")
        return branch, total.get(branch, 0.0)


def _is_related(one: CategoryPath, other: CategoryPath) -> bool:
    """Whether a category is the other one, above or below it, or beside it in a branch."""
    above, beside = one.rpartition("/")[0], other.rpartition("/")[0]
    is_line = one in prefixes(other) or other in prefixes(one)
    return is_line or (above == beside != "")


def _by_phrase(
    phrases: Mapping[str, CategoryPath], head: str, body: str = "", first: str = ""
) -> Classification | None:
    """Return the categories that phrases name in the title or the text; those in the title count first.

    A short phrase counts in the `first` sentence only, if there is one.
    """
    named: dict[CategoryPath, tuple[int, str]] = {}
    for phrase, category in phrases.items():
        plain = _plain(phrase)
        is_short = len(phrase) <= SHORT_PHRASE
        text = first if first and is_short else body
        for weight, where, name in ((1000, head, "title"), (1, text, "text")):
            times = where.count(plain) if plain else 0
            if times:
                score, _ = named.get(category, (0, ""))
                named[category] = (score + weight * times, f"{phrase!r} is in its {name}")
                break
    if not named:
        return None
    best = sorted(named, key=lambda path: (-named[path][0], path))[:MAX_CATEGORIES]
    return Classification(tuple(best), 1.0, tuple(f"{path}: {named[path][1]}" for path in best))


def _prose(text: str) -> tuple[str, str]:
    """Return the words of a text without its code, and of its first sentence."""
    prose = passages.prose(text)
    first = _SENTENCE_END.split(prose.strip(), maxsplit=1)[0]
    return _plain(prose), _plain(first)


def _why_none(vector: np.ndarray | None) -> str:
    away = ", and there are no vectors to compare" if vector is None else ""
    return f"no phrase names a category for it{away}"


def _certainty(share: float) -> float:
    """Return the probability, 0..1, that a category with this share is right."""
    share = min(MAX_SHARE, max(MIN_SHARE, share))
    return 1 / (1 + math.exp(-INTERCEPT - SLOPE * math.log(share / (1 - share))))


def propose(vault: Vault) -> list[ProbableCategories]:
    """Propose categories for the lessons that have none, by id. The index is read as it is.

    Raises IndexStateError without one.
    """
    opened = vault.open_index()
    return _proposals(opened.store, vault.config, embed_of(vault, opened.embedder))


def nearer(
    vault: Vault, category: CategoryPath, title: str, text: str, vector: np.ndarray | None
) -> str:
    """Return the category that a draft is clearly nearer to than the one it names; "" without one.

    Raises IndexStateError without an index.
    """
    opened = vault.open_index()
    learned = _learned(opened.store, *_settings(vault.config), embed_of(vault, opened.embedder))
    return "" if vector is None else learned.nearer(category, title, text, vector)


def of_draft(vault: Vault, title: str, text: str, vector: np.ndarray | None) -> Classification:
    """Return the categories of a lesson without a file. Raises IndexStateError without an index."""
    opened = vault.open_index()
    learned = _learned(opened.store, *_settings(vault.config), embed_of(vault, opened.embedder))
    return learned.classify(title, text, vector)


def embed_of(vault: Vault, name: str) -> Embed | None:
    """Return the function that embeds names like the index, by its embedder's name; None if away."""
    try:
        embedder = vault.embedder
    except EmbedderError:
        return None
    return embedder.embed_documents if embedder is not None and embedder.name == name else None


def reclassify(table: Table, config: Config, embed: Embed | None) -> int:
    """Write the proposals into the rows of an index, for filters; return the number of rows changed.

    The caller holds the index's lock. Files are never touched.
    """
    before = {
        row["lesson_id"]: (row["categories"], row["filed_by"])
        for row in table.rows(("lesson_id", "categories", "filed_by"), _UNFILED)
    }
    after: dict[str, tuple[list[CategoryPath], str]] = {}
    for proposal in _proposals(table, config, embed) if before else ():
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


def _proposals(table: Table, config: Config, embed: Embed | None) -> list[ProbableCategories]:
    where = filters.all_of(_UNFILED, filters.WHOLE)
    columns = ("id", "lesson_id", "path", "title", "text", "file_hash")
    unfiled, vectors = table.rows_and_vectors(columns, where)
    if not unfiled:
        return []
    classifier = _learned(table, *_settings(config), embed)
    proposals = []
    several = [None] * len(unfiled) if vectors is None else vectors
    for row, vector in zip(unfiled, several, strict=True):
        verdict = classifier.classify(row["title"], row["text"], vector)
        probable = ProbableCategories(
            lesson_id=row["lesson_id"],
            path=row["path"],
            title=row["title"],
            categories=verdict.categories,
            sure=verdict.sure,
            why=verdict.why,
            file_hash=row["file_hash"],
        )
        proposals.append(probable)
    return proposals


def _settings(config: Config) -> tuple[tuple[tuple[str, CategoryPath], ...], tuple[str, ...]]:
    return tuple(config.keywords.items()), tuple(config.taxonomy)


@lru_cache(maxsize=1)  # a reader's table stays at its version; of 10,000 lessons it takes a second
def _learned(
    table: Table,
    keywords: Sequence[tuple[str, CategoryPath]],
    taxonomy: Sequence[CategoryPath],
    embed: Embed | None,
) -> Classifier:
    where = filters.all_of(_FILED, filters.WHOLE)
    filed, vectors = table.rows_and_vectors(("id", "title", "categories"), where)
    categories, titles = ([row[name] for row in filed] for name in ("categories", "title"))
    return Classifier(vectors, categories, titles, dict(keywords), taxonomy, embed)


def _declared(
    used: Mapping[CategoryPath, int], taxonomy: Sequence[CategoryPath], least: int = 1
) -> tuple[set[CategoryPath], bool]:
    """Return the categories of the user's taxonomy, and whether it is the user's own.

    `lessons init` writes the default one, which counts until `least` lessons are filed elsewhere.
    """
    named = {path for path in map(normalise, taxonomy) if path}
    if named - set(DEFAULT_TAXONOMY):
        return named, True
    default = {branch for path in DEFAULT_TAXONOMY for branch in prefixes(path)}
    elsewhere = sum(count for path, count in used.items() if path not in default)
    return (named or set(DEFAULT_TAXONOMY)) if elsewhere < least else set(), False


def _described(path: CategoryPath, keywords: Mapping[str, CategoryPath]) -> str:
    phrases = ", ".join(phrase for phrase, category in keywords.items() if category == path)
    words = re.sub(r"[/-]", " ", path)
    return f"{words}: {phrases}" if phrases else words


@lru_cache(maxsize=2)
def _embedded(embed: Embed, texts: tuple[str, ...]) -> np.ndarray:
    return embed(texts)


class _Phrases(NamedTuple):
    """The phrases that name a category: the vault's own; of the default tree, those of branches that it
    uses, and those that only `vault.toml` names.
    """

    of_vault: Mapping[str, CategoryPath]
    used: Mapping[str, CategoryPath]
    declared: Mapping[str, CategoryPath]

    def all(self) -> dict[str, CategoryPath]:
        return {**self.declared, **self.used, **self.of_vault}


def _in_force(
    used: Mapping[CategoryPath, int],
    keywords: Mapping[str, CategoryPath],
    taxonomy: Sequence[CategoryPath],
) -> _Phrases:
    """Return the vault's phrases, and the default ones for the deepest of their branches that it has.

    A vault has the categories of its lessons and of its taxonomy, with the branches above. If a
    category of its lessons is called like a phrase, or like its category, the phrase means that category.
    """
    of_vault = {phrase: normalise(path) for phrase, path in keywords.items()}
    young, _ = _declared(used, taxonomy, YOUNG_VAULT)
    existing = {
        branch for path in {*used, *young, *map(normalise, taxonomy)} for branch in prefixes(path)
    }
    in_use = {path.partition("/")[0] for path in {*used, *young}}
    by_name = {path.rpartition("/")[2]: path for path in sorted(used, key=used.__getitem__)}
    of_used: dict[str, CategoryPath] = {}
    of_declared: dict[str, CategoryPath] = {}
    for path, phrases in DEFAULT_PHRASES.items():
        branch = next((each for each in reversed(prefixes(path)) if each in existing), "")
        category = path if path in used else by_name.get(path.rpartition("/")[2], branch)
        for phrase in phrases.split(", "):
            if meant := by_name.get(phrase.replace(" ", "-"), category):
                group = of_used if meant.partition("/")[0] in in_use else of_declared
                group[phrase] = meant
    return _Phrases({each: path for each, path in of_vault.items() if path}, of_used, of_declared)


def _plain(text: str) -> str:
    """Return the words of a text, in small letters, each between blanks: ` github actions `."""
    words = _WORD.findall(text.lower())
    return f" {' '.join(words)} " if words else ""
