"""The evidence that a lesson answers a prompt, beside its score: its lead and the words in common.

The lead is how much higher it scores than the next five lessons on average, of two that both answer
than the five after the pair. Words count by rarity: a
word in few lessons says much, a word in many prompts says nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

from vault_index.index.words import Words, words_of
from vault_index.retrieval.hit import LEAD, SCORE
from vault_index.text.words import stem_of, terms_of

if TYPE_CHECKING:
    from vault_index.retrieval.hit import Hit

NEXT = 5  # lessons that the lead is taken over
FEW = 0.1  # what each scores that a small vault lacks: a lone weak hit does not stand out
MANY = 10  # hits: with fewer there are no others
SAME = 0.7  # of the words of two lessons: copies of one lesson
PAIR = 0.9  # of the first score: so much of it has a second that answers, too


@lru_cache(maxsize=4096)
def _stems_of(names: str, text: str) -> frozenset[str]:
    return frozenset(map(stem_of, words_of(names, text)))


def reason_of(score: float, others: Iterable[float]) -> float:
    """Return the reason to inject a lesson with this score beside the scores of others, by its lead."""
    below = sorted((each for each in others if each < score), reverse=True)[:NEXT]
    lead = score - sum(below + [FEW] * (NEXT - len(below))) / NEXT
    return SCORE * score + LEAD * lead


def _are_the_same(stems: Set[str], others: Set[str]) -> bool:
    """Whether two lessons have nearly the same words: a lesson does not stand out from its copies."""
    return len(stems & others) >= SAME * len(stems | others)


def _is_pair(first: float, below: Sequence[float]) -> bool:
    """Whether the best of other scores stands out with the first: nearer to it than to the next one."""
    second, third = (*below, 0.0, 0.0)[:2]
    return first > 0 and second >= PAIR * first and second - third >= first - second


def weigh(
    words: Words,
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
    for word in set(terms_of(query)):
        stem = stem_of(word)
        weights[stem] = max(words.weight(word), weights.get(stem, 0.0))
    total = sum(weights.values()) or 1.0
    scores = {hit.lesson_id: hit.base - hit.taught for hit in hits}
    found = {hit.lesson_id: hit for hit in hits}

    def stems(id: str) -> frozenset[str]:  # of most hits nobody asks
        return _stems_of(found[id].names, found[id].own_words)

    ranked = sorted(scores, key=lambda id: -scores[id])
    beyond = scores[ranked[-1]] if len(hits) >= MANY else 0.0 if text_only else FEW
    weighed = []
    for hit in hits[:first]:
        base, own_stems = hit.base, stems(hit.lesson_id)
        later = ranked[ranked.index(hit.lesson_id) + 1 :]
        others = (id for id in later if not _are_the_same(own_stems, stems(id)))
        below = [scores[id] for id in islice(others, NEXT + 1)]
        is_first = hit.lesson_id == ranked[0] and not hit.taught
        below = below[1:] if is_first and _is_pair(base, below) else below[:NEXT]
        lead = base - sum(below + [beyond] * (NEXT - len(below))) / NEXT
        common = sum(weights[stem] for stem in weights.keys() & own_stems) if base > 0 else 0.0
        weighed.append(replace(hit, lead=lead, common=common / total))
    return weighed
