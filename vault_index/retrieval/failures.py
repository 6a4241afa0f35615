"""A failed command -> lessons: ranked by what command and message say, silent below floors of their own.

Three texts are searched as one: the command with the lines that say why, these lines, and the words of
the whole output. Raw scores grow with an output's length, so a lesson is injected if it stands out from
the next four and shares rare words with message and command. Taught lines act by themselves.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from vault_index.errors import EmbedderError
from vault_index.index import words
from vault_index.index.words import Words, words_of
from vault_index.retrieval import floor, query, scoring
from vault_index.retrieval.evidence import FEW, NEXT
from vault_index.retrieval.floor import Floors
from vault_index.retrieval.hit import Hit
from vault_index.store import filters
from vault_index.store.reader import Reader, once
from vault_index.text import failure
from vault_index.text.failure import Failure
from vault_index.text.words import STOP_WORDS, terms_of

if TYPE_CHECKING:
    import numpy as np

    from vault_index.vault import Vault

# Shares of the texts that are embedded: the command with the lines, and the lines. With them, and
# `COVERAGE`, .66 of the first and .80 of the first three hits are right on 154 failures that one of 1,870
# notes answers; with the whole output, which takes twice as long to embed, it is .66 and .82.
TEXTS = (0.65, 0.35)
FULL_TEXT = 1 / 3  # each word of a message is in all three texts
COVERAGE = 0.2  # of the score: for the share of the message's words, by rarity, that a lesson has
POOL = 64  # candidates that are compared word by word
# Weights of the strength beside that share: the cosine, the longest runs of words that a lesson shares
# with the command and with a line of output, rare words of the message that it has, and all of them.
# Fitted by logistic regression, but for the run in the output: it counts as that in the command does.
COSINE, RUN, RARE_WORDS, MESSAGE = 0.24, 0.0036, 0.0044, -0.0009
MAX_RUN = 30.0
MAX_OUTPUT_LINES = 80  # the last, that are looked at for such a run
IN_PASSING = 0.3  # of a word such as "the" within a run
MAX_RARITY = 6.0
# rarity of words in a row: a lesson that quotes the message of a failed assertion
ASSERTION_RUN = 12.0
QUOTED = 0.8  # or that quotes most of it
FIRES, SILENT = "fires_on_error", "silent_on_error"


@dataclass(frozen=True, slots=True)
class FailureHits:
    """The hits for a failure, best first. The score of the first is its `strength`, as floors are."""

    hits: list[Hit]
    floors: Floors
    strength: float = 0.0
    taught: str = ""  # the line of the first hit's `fires_on_error` that the output has
    why_silent: str = ""
    kept_out: Sequence[Hit] = ()  # by their `silent_on_error`

    @property
    def is_whole(self) -> bool:
        """Whether the first comes whole, if at all."""
        return bool(self.taught) or self.strength > self.floors.whole

    @property
    def is_above(self) -> bool:
        return bool(self.hits) and not self.why_silent and self.is_whole

    @property
    def is_line(self) -> bool:
        is_near = self.floors.line < self.strength and not self.is_whole
        return bool(self.hits) and not self.why_silent and is_near


def find(
    vault: Vault,
    failed: Failure,
    k: int = 5,
    *,
    text_only: bool = False,
    passed: Collection[str] = (),
) -> FailureHits:
    """Return up to `k` lessons for a failure. Raises IndexStateError without an index.

    Lessons that are `passed` over count as if the vault did not have them.
    """
    taught = taught_lines(vault.open_index().store)
    fires, silent = _acting(taught[FIRES], failed), _acting(taught[SILENT], failed)
    fires = {id: line for id, line in fires.items() if id not in passed}
    floors = floor.for_failures(vault, text_only=text_only)
    if fires:
        rows = vault.open_index().store.shown_of(list(fires))
        hit_of = {hit.lesson_id: hit for hit in map(Hit.of_lesson, rows)}
        hits = [
            replace(hit_of[id], score=1.0, taught=1.0, taught_prompt=line)
            for id, line in fires.items()
        ]
        return FailureHits(hits[:k], floors, 1.0, next(iter(fires.values())))
    if failed.is_none:
        return FailureHits([], floors, why_silent="the output does not say what failed")
    weights = words.of(vault).of_failures
    vectors = {} if text_only or floor.is_unmeasured(vault) else _vectors(vault, failed)
    if not vectors:
        floors = floor.for_failures(vault, text_only=True)
    answer = _search(vault, weights, failed, k, vectors, floors, passed)
    hits, why = [hit for hit in answer.hits if hit.lesson_id not in silent], ""
    kept_out = [hit for hit in answer.hits if hit.lesson_id in silent]
    if kept_out and kept_out[0] is answer.hits[0]:
        hits, why = [], f"{SILENT} of {kept_out[0].lesson_id}"
    elif hits and failed.is_assertion and not _names(weights, failed, hits[0]):
        why = "a test says that the code is wrong"
    return replace(answer, hits=hits, why_silent=why, kept_out=kept_out)


def strength(vault: Vault, failed: Failure) -> float:
    """Return the strength of the first lesson for a failure by vectors, to measure floors with.

    Raises EmbedderError.
    """
    weights, floors = words.of(vault).of_failures, floor.for_failures(vault)
    vectors = _vectors(vault, failed)
    if not vectors:
        raise EmbedderError("the embedder does not answer", "run `lessons index` when it does")
    return _search(vault, weights, failed, 1, vectors, floors).strength


@once
def taught_lines(store: Reader) -> dict[str, dict[str, list[str]]]:
    """Return the taught lines of all lessons that agents may get, by kind and lesson."""
    where = filters.all_of(filters.WHOLE, filters.FOR_AGENTS, filters.TAUGHT_ERRORS)
    rows = store.rows(("lesson_id", FIRES, SILENT), where)
    kinds = (FIRES, SILENT)
    return {kind: {row["lesson_id"]: row[kind] for row in rows if row[kind]} for kind in kinds}


def _acting(lines: dict[str, list[str]], failed: Failure) -> dict[str, str]:
    """Return the lessons one of whose lines the output has, with the line; the longest first."""
    acting = {
        lesson: max(matching, key=len)
        for lesson, each in lines.items()
        if (matching := [line for line in each if line and failed.has(line)])
    }
    return dict(sorted(acting.items(), key=lambda item: (-len(item[1]), item[0])))


def _search(
    vault: Vault,
    weights: Words,
    failed: Failure,
    k: int,
    vectors: dict[str, np.ndarray],
    floors: Floors,
    passed: Collection[str] = (),
) -> FailureHits:
    """Return the best hits for a failure; without vectors by full text."""
    first, _, whole = failed.queries  # the second has no word that the first has not
    text = query.searched(f"{first}\n{whole}")
    shares = zip(TEXTS, _embedded(failed), strict=True)
    vector: Any = sum(share * vectors[each] for share, each in shares) if vectors else None
    store = vault.open_index().store
    scored = scoring.candidates(store, text, vector, range(POOL), None, exact=False)
    message = FailureWords(weights, failed)
    best = [
        (hit.cosine + FULL_TEXT * hit.full_text + COVERAGE * message.coverage(hit), hit)
        for hit in scored.hits
        if not (hit.withheld or hit.lesson_id in passed)
    ]
    best.sort(key=lambda each: (-each[0], each[1].lesson_id))
    if not best:
        return FailureHits([], floors)
    score, hit = best[0]
    rare = message.rare_words(hit)
    others = sum(max(FEW, each[0]) for each in best[1:NEXT]) + FEW * (NEXT - len(best[:NEXT]))
    strength = score / ((score + others) or 1)
    strength += COSINE * hit.cosine + RUN * (message.command_run(hit) + message.output_run(hit))
    strength += RARE_WORDS * rare + MESSAGE * message.total
    if vector is None and not rare:  # the same command says nothing of why it failed
        strength = 0.0
    hits = [replace(hit, score=strength), *(other for _, other in best[1:k])]
    return FailureHits(hits, floors, strength)


class FailureWords:
    """The words of a failure, weighed by their rarity, to compare with many lessons."""

    def __init__(self, weights: Words, failed: Failure) -> None:
        self._vault_words, self._command = weights, terms_of(failed.command)
        self._output = failed.normal[-MAX_OUTPUT_LINES:]
        output_words = {word for line in failed.lines for word in failure.words_of_line(line)}
        self._rarity = {
            word: weights.rarity(word) for word in output_words if word not in STOP_WORDS
        }
        self._in_command = {*self._command, failed.program.casefold()}
        self._weights = {word: weights.weight(word) for word in output_words - self._in_command}
        self._runs = {word: min(MAX_RARITY, weights.rarity(word)) for word in self._command}
        self.total = sum(self._weights.values())

    def coverage(self, hit: Hit) -> float:
        words = {*words_of(hit.title, hit.own_words)}
        shared = sum(value for word, value in self._rarity.items() if word in words)
        return shared / (sum(self._rarity.values()) or 1.0)

    def rare_words(self, hit: Hit) -> float:
        words = {*words_of(hit.title, hit.own_words)}
        return sum(value for word, value in self._weights.items() if word in words)

    def command_run(self, hit: Hit) -> float:
        return min(
            MAX_RUN, longest_run(self._command, words_of(hit.title, hit.own_words), self._runs)
        )

    def output_run(self, hit: Hit) -> float:
        """Return the weight of the heaviest run that a line of output shares with a lesson."""
        text, best = words_of(hit.title, hit.own_words), 0.0
        lesson_words = set(text)
        for line in map(failure.words_of_line, self._output):
            shared = lesson_words.intersection(line)
            if len(shared) > 1:
                weights = {
                    word: self._vault_words.weight(word) for word in shared - self._in_command
                }
                best = max(best, longest_run(line, text, weights))
        return min(MAX_RUN, best)


def longest_run(line: Sequence[str], text: Sequence[str], weights: dict[str, float]) -> float:
    """Return the weight of the heaviest run of two words and more that a line and a text share."""
    places: dict[str, list[int]] = {word: [] for word in line}
    for index, word in enumerate(text):
        if word in places:
            places[word].append(index)
    best = 0.0
    for start, first in enumerate(line):
        for index in places[first]:
            if start and index and line[start - 1] == text[index - 1]:
                continue  # within a run that was weighed
            length, weight = 0, 0.0
            for word, other in zip(line[start:], text[index:], strict=False):
                if word != other:
                    break
                weight += IN_PASSING if word in STOP_WORDS else weights.get(word, 0.0)
                length += 1
            best = max(best, weight) if length > 1 else best
    return best


def _names(vault_words: Words, failed: Failure, hit: Hit) -> bool:
    text = words_of(hit.title, hit.own_words)
    if failed.tests & set(text):
        return True
    for line in filter(failure.is_specific, failed.lines):
        line_words = failure.words_of_line(re.sub(r"^E\s+", "", line))  # as pytest marks it
        weights = {word: vault_words.weight(word) for word in line_words}
        # words are common in a small vault
        whole = sum(IN_PASSING if word in STOP_WORDS else weights[word] for word in line_words)
        if longest_run(line_words, text, weights) >= min(ASSERTION_RUN, QUOTED * whole):
            return True
    return False


def _embedded(failed: Failure) -> tuple[str, ...]:
    return failed.queries[: len(TEXTS)]


def _vectors(vault: Vault, failed: Failure) -> dict[str, np.ndarray]:
    embedder, _ = query.embedder_for(vault, vault.open_index())
    if embedder is None:
        return {}
    texts = list(dict.fromkeys(_embedded(failed)))
    try:
        return dict(zip(texts, query.embed(vault, embedder, *texts), strict=True))
    except EmbedderError:
        return {}
