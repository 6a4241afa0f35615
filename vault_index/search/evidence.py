"""The evidence that a lesson answers a prompt, beside its score: its lead and the words in common.

The lead is how much higher it scores than the next five lessons on average. Words count by rarity: a
word in few lessons says much, a word in many prompts says nothing. The counts of words, and all else
that is fitted to an index, are files beside it, read once while they stay.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from vault_index import files
from vault_index.errors import VaultError
from vault_index.index.rows import names_of
from vault_index.search.hit import LEAD, SCORE
from vault_index.search.scoring import STOP_WORDS
from vault_index.store import filters, ownership
from vault_index.text.words import says_nothing, stem_of, terms_of

if TYPE_CHECKING:
    from vault_index.search.hit import Hit
    from vault_index.vault import Vault

NEXT = 5  # lessons that the lead is taken over
FEW = 0.1  # what each scores that a small vault lacks: a lone weak hit does not stand out
MANY = 10  # hits: with fewer there are no others
COMMON = 1.3  # how much less a word says that many prompts or failures have
MAX_RARITY = 7.0
SAME = 0.7  # of the words of two lessons: copies of one lesson

SMALL = 20  # lessons: fewer say nothing of what lessons of their subject score
REFIT_SHARE = 0.1  # of the lessons changed in number since the fit

_FILE = "words.json"

T = TypeVar("T")
_kept: dict[Path, tuple[object, Any]] = {}


def kept(vault: Vault, name: str, kind: Callable[..., T]) -> T | None:
    """Return the fit that was saved under a name for the index; None without one."""
    try:
        file = vault.open_index().store.index / name
        stamp = files.stamp(file)
        known = _kept.get(file)
        if known is None or known[0] != stamp:
            known = _kept[file] = stamp, kind(**json.loads(ownership.read_text(file)))
        fitted: T = known[1]
        return fitted
    except (OSError, ValueError, TypeError, VaultError):
        return None


def keep(vault: Vault, name: str, fitted: Any) -> None:
    """Save a dataclass that was fitted to the index. Raises WriteError."""
    index = vault.open_index().store.index
    data = json.dumps(asdict(fitted), ensure_ascii=False).encode()
    files.replace_file(index / name, data)


def has_outgrown(vault: Vault, lessons: int) -> bool:
    """Whether the number of lessons changed too much since a fit."""
    return abs(vault.open_index().lessons - lessons) > REFIT_SHARE * max(1, lessons)


def foreign_prompts(file: str = "foreign_prompts.txt") -> list[str]:
    """List the prompts that no lesson answers: acknowledgements, chit-chat, other people's code..."""
    lines = (Path(__file__).parent / file).read_text("utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("# ")]


@dataclass(frozen=True, slots=True)
class Words:
    """How common words are in the lessons of an index, and in prompts or failures without an answer."""

    lessons: int
    in_lessons: dict[str, int]  # in two lessons and more
    in_prompts: dict[str, int]
    prompts: int

    def rarity(self, word: str) -> float:
        """Return how much it says that a lesson has a word: the logarithm of how few have it."""
        return math.log((self.lessons + 1) / (self.in_lessons.get(word, 1) + 0.5))

    def weight(self, word: str) -> float:
        """Return the same for a word of a prompt: what many prompts say, says little."""
        if word in STOP_WORDS or says_nothing(word):
            return 0.0
        common = COMMON * math.log((self.prompts + 1) / (self.in_prompts.get(word, 0) + 0.5))
        return max(0.0, min(self.rarity(word), common, MAX_RARITY))


@lru_cache(maxsize=4096)
def words_of(names: str, text: str) -> tuple[str, ...]:
    """Return the words of a lesson in their order, with a bar between its names and its text."""
    return (*terms_of(names), "|", *terms_of(text))


@lru_cache(maxsize=4096)
def _stems_of(names: str, text: str) -> frozenset[str]:
    return frozenset(map(stem_of, words_of(names, text)))


def count(vault: Vault, prompts: Iterable[str]) -> Words:
    """Count the words of an index and of prompts, and keep the counts. Raises WriteError."""
    opened = vault.open_index()
    counted: Counter[str] = Counter()
    for row in opened.store.rows(("title", "aliases", "tags", "text"), filters.WHOLE):
        counted.update(set(words_of(names_of(row), row["text"])))
    asked = [set(terms_of(prompt)) for prompt in prompts]
    in_prompts = Counter(word for each in asked for word in each)
    in_lessons = {word: number for word, number in counted.items() if number > 1}
    words = Words(opened.lessons, in_lessons, dict(in_prompts), len(asked))
    keep(vault, _FILE, words)
    return words


def load(vault: Vault) -> Words | None:
    """Return the counts of the vault's index; None if nothing was counted yet."""
    return kept(vault, _FILE, Words)


def reason_of(score: float, others: Iterable[float]) -> float:
    """Return the reason to inject a lesson with this score beside the scores of others, by its lead."""
    below = sorted((each for each in others if each < score), reverse=True)[:NEXT]
    lead = score - sum(below + [FEW] * (NEXT - len(below))) / NEXT
    return SCORE * score + LEAD * lead


def _are_the_same(stems: Set[str], others: Set[str]) -> bool:
    """Whether two lessons have nearly the same words: a lesson does not stand out from its copies."""
    return len(stems & others) >= SAME * len(stems | others)


def weigh(
    words: Words | None,
    query: str,
    hits: Sequence[Hit],
    *,
    text_only: bool,
    first: int | None = None,
) -> list[Hit]:
    """Return hits of one search, or the `first` of them, with their evidence.

    `hits` are at least five more than anybody looks at, if there are so many.
    """
    weights: dict[str, float] = {}
    for word in set(terms_of(query)) if words else ():
        stem = stem_of(word)
        weights[stem] = max(words.weight(word) if words else 0.0, weights.get(stem, 0.0))
    total = sum(weights.values()) or 1.0
    scores = {hit.lesson_id: hit.base - hit.taught for hit in hits}
    found = {hit.lesson_id: hit for hit in hits}

    def stems(id: str) -> frozenset[str]:  # of most hits nobody asks
        return _stems_of(found[id].names, found[id].text)

    ranked = sorted(scores, key=lambda id: -scores[id])
    beyond = scores[ranked[-1]] if len(hits) >= MANY else 0.0 if text_only else FEW
    weighed = []
    for hit in hits[:first]:
        base, own = hit.base, stems(hit.lesson_id)
        later = ranked[ranked.index(hit.lesson_id) + 1 :]
        others = (id for id in later if not _are_the_same(own, stems(id)))
        below = [scores[id] for id in islice(others, NEXT)]
        lead = base - sum(below + [beyond] * (NEXT - len(below))) / NEXT
        common = sum(weights[stem] for stem in weights.keys() & own) if base > 0 else 0.0
        weighed.append(replace(hit, lead=lead, common=common / total))
    return weighed
