"""A failed command -> lessons: ranked by what command and message say, silent below a floor of its own.

Three texts are searched as one: the command with the lines that say why, these lines, and the words of
the whole output. Raw scores grow with an output's length, so a lesson is injected if it stands out from
the next four and shares rare words with message and command. The floor is a high quantile over failures
that no lesson answers (`foreign_failures.txt`). Taught lines act by themselves.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vault_index.errors import EmbedderError
from vault_index.search import evidence, floor, query, scoring
from vault_index.search.evidence import FEW, NEXT, words_of
from vault_index.search.floor import Floors
from vault_index.search.hit import Hit
from vault_index.store import filters
from vault_index.store.reader import Reader, once
from vault_index.text import failure
from vault_index.text.failure import Failure
from vault_index.text.words import terms_of

if TYPE_CHECKING:
    import numpy as np

    from vault_index.store.sync import Progress
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
# The shares of the failures that get a whole lesson though none answers them, and at least a line: as if
# they were on a subject of the vault, and of the foreign ones.
PASSING, PASSING_FOREIGN = Floors(0.10, 0.60), Floors(0.02, 0.15)
USUAL = Floors(0.44, 0.36)
# rarity of words in a row: a lesson that quotes the message of a failed assertion
ASSERTION_RUN = 12.0
QUOTED = 0.8  # or that quotes most of it
MAX_TITLES = 100  # that are asked for: a failure takes longer than a prompt
FIRES, SILENT = "fires_on_error", "silent_on_error"

NEVER = Floors(float("inf"), float("inf"))
_FILE = "failures.json"


@dataclass(frozen=True, slots=True)
class Fitted(floor.OfIndex):
    """The floors for failures, and how common words are in those that no lesson answers."""

    errors: dict[str, int] = field(default_factory=dict)
    foreign: int = 0  # how many these are


@dataclass(frozen=True, slots=True)
class Answer:
    """The hits for a failure, best first. The score of the first is its `strength`, as floors are."""

    hits: list[Hit]
    strength: float = 0.0
    floors: Floors = NEVER
    taught: str = ""  # the line of the first hit's `fires_on_error` that the output has
    why_silent: str = ""
    kept_out: Sequence[Hit] = ()  # by their `silent_on_error`

    @property
    def is_above(self) -> bool:
        is_strong = bool(self.taught) or self.strength > self.floors.whole
        return bool(self.hits) and not self.why_silent and is_strong

    @property
    def is_line(self) -> bool:
        is_near = self.floors.line < self.strength <= self.floors.whole
        return bool(self.hits) and not (self.why_silent or self.taught) and is_near


def find(vault: Vault, failed: Failure, k: int = 5, *, text_only: bool = False) -> Answer:
    """Return up to `k` lessons for a failure. Raises IndexStateError without an index."""
    taught = taught_lines(vault.open_index().store)
    fires, silent = _acting(taught[FIRES], failed), _acting(taught[SILENT], failed)
    found, words = load(vault), evidence.load(vault)
    if fires:
        floors = found.floors(text_only=text_only) if found else NEVER
        rows = vault.open_index().store.shown_of(list(fires))
        there = {hit.lesson_id: hit for hit in map(Hit.of_lesson, rows)}
        hits = [
            replace(there[id], score=1.0, taught=1.0, taught_prompt=line)
            for id, line in fires.items()
        ]
        return Answer(hits[:k], 1.0, floors, next(iter(fires.values())))
    if failed.is_none:
        return Answer([], why_silent="the output does not say what failed")
    if found is None or words is None:
        return Answer([], why_silent="no floor is fitted yet")
    weights = replace(words, in_prompts=found.errors, prompts=found.foreign)
    vectors = {} if text_only else _vectors(vault, failed)
    answer = _search(vault, weights, failed, k, vectors)
    answer = replace(answer, floors=found.floors(text_only=not vectors))
    hits, why = [hit for hit in answer.hits if hit.lesson_id not in silent], ""
    kept_out = [hit for hit in answer.hits if hit.lesson_id in silent]
    if kept_out and kept_out[0] is answer.hits[0]:
        hits, why = [], f"{SILENT} of {kept_out[0].lesson_id}"
    elif hits and failed.is_assertion and not _names(weights, failed, hits[0]):
        why = "a test says that the code is wrong"
    return replace(answer, hits=hits, why_silent=why, kept_out=kept_out)


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
        lesson: max(own, key=len)
        for lesson, each in lines.items()
        if (own := [line for line in each if line and failed.has(line)])
    }
    return dict(sorted(acting.items(), key=lambda item: (-len(item[1]), item[0])))


def _search(
    vault: Vault,
    weights: evidence.Words,
    failed: Failure,
    k: int,
    vectors: dict[str, np.ndarray],
    without: str = "",
) -> Answer:
    """Return the best hits for a failure, without one lesson and those like it."""
    first, _, whole = failed.queries  # the second has no word that the first has not
    text = query.searched(f"{first}\n{whole}")
    shares = zip(TEXTS, _embedded(failed), strict=True)
    vector: Any = sum(share * vectors[each] for share, each in shares) if vectors else None
    store = vault.open_index().store
    scored = scoring.candidates(store, text, vector, range(POOL), None, exact=False)
    message = Message(weights, failed)
    best = [
        (hit.cosine + FULL_TEXT * hit.full_text + COVERAGE * message.coverage(hit), hit)
        for hit in scored.hits
        if not hit.withheld
    ]
    best.sort(key=lambda each: (-each[0], each[1].lesson_id))
    if without:
        near = [hit.lesson_id for _, hit in best[: floor.NEAREST]]
        alike = floor.like(vault, without, near)
        best = [each for each in best if each[1].lesson_id not in alike]
    if not best:
        return Answer([])
    score, hit = best[0]
    rare = message.rare_words(hit)
    others = sum(each[0] for each in best[1:NEXT]) + FEW * (NEXT - len(best[:NEXT]))
    strength = score / ((score + others) or 1)
    strength += COSINE * hit.cosine + RUN * (message.command_run(hit) + message.output_run(hit))
    strength += RARE_WORDS * rare + MESSAGE * message.total
    if vector is None and not rare:  # the same command says nothing of why it failed
        strength = 0.0
    hits = [replace(hit, score=strength), *(other for _, other in best[1:k])]
    return Answer(hits, strength)


class Message:
    """The words of a failure, weighed by their rarity, to compare with many lessons."""

    def __init__(self, weights: evidence.Words, failed: Failure) -> None:
        self._known, self._command = weights, terms_of(failed.command)
        self._output = failed.normal[-MAX_OUTPUT_LINES:]
        said = {word for line in failed.lines for word in failure.words_of_line(line)}
        self._rarity = {
            word: weights.rarity(word) for word in said if word not in scoring.STOP_WORDS
        }
        self._in_command = {*self._command, failed.program.casefold()}
        self._weights = {word: weights.weight(word) for word in said - self._in_command}
        self._runs = {word: min(MAX_RARITY, weights.rarity(word)) for word in self._command}
        self.total = sum(self._weights.values())

    def coverage(self, hit: Hit) -> float:
        words = {*words_of(hit.title, hit.text)}
        own = sum(value for word, value in self._rarity.items() if word in words)
        return own / (sum(self._rarity.values()) or 1.0)

    def rare_words(self, hit: Hit) -> float:
        words = {*words_of(hit.title, hit.text)}
        return sum(value for word, value in self._weights.items() if word in words)

    def command_run(self, hit: Hit) -> float:
        return min(MAX_RUN, longest_run(self._command, words_of(hit.title, hit.text), self._runs))

    def output_run(self, hit: Hit) -> float:
        """Return the weight of the heaviest run that a line of output shares with a lesson."""
        text, best = words_of(hit.title, hit.text), 0.0
        there = set(text)
        for line in map(failure.words_of_line, self._output):
            own = there.intersection(line)
            if len(own) > 1:
                weights = {word: self._known.weight(word) for word in own - self._in_command}
                best = max(best, longest_run(line, text, weights))
        return min(MAX_RUN, best)


def longest_run(line: Sequence[str], text: Sequence[str], weights: dict[str, float]) -> float:
    """Return the weight of the heaviest run of two words and more that a line and a text share."""
    places: dict[str, list[int]] = {word: [] for word in line}
    for at, word in enumerate(text):
        if word in places:
            places[word].append(at)
    best = 0.0
    for start, first in enumerate(line):
        for at in places[first]:
            if start and at and line[start - 1] == text[at - 1]:
                continue  # within a run that was weighed
            length, weight = 0, 0.0
            for word, other in zip(line[start:], text[at:], strict=False):
                if word != other:
                    break
                weight += IN_PASSING if word in scoring.STOP_WORDS else weights.get(word, 0.0)
                length += 1
            best = max(best, weight) if length > 1 else best
    return best


def _names(known: evidence.Words, failed: Failure, hit: Hit) -> bool:
    text = words_of(hit.title, hit.text)
    if failed.tests & set(text):
        return True
    for line in filter(failure.is_specific, failed.lines):
        said = failure.words_of_line(re.sub(r"^E\s+", "", line))  # as pytest marks it
        weights = {word: known.weight(word) for word in said}
        # words are common in a small vault
        whole = sum(IN_PASSING if word in scoring.STOP_WORDS else weights[word] for word in said)
        if longest_run(said, text, weights) >= min(ASSERTION_RUN, QUOTED * whole):
            return True
    return False


@lru_cache(maxsize=1)
def foreign() -> tuple[Failure, ...]:
    """Return the failures that no lesson answers."""
    blocks = (Path(__file__).parent / "foreign_failures.txt").read_text("utf-8").split("\n\n")
    asked = (block[2:].partition("\n") for block in blocks if block.startswith("$ "))
    return tuple(failure.read(command, output) for command, _, output in asked)


def is_stale(vault: Vault) -> bool:
    """Whether the floor of failures should be fitted, again or for the first time."""
    found = load(vault)
    return found is None or evidence.has_outgrown(vault, found.lessons)


def fit(vault: Vault, progress: Progress = lambda _done, _all: None) -> Fitted:
    """Fit the floor of failures to the index as it is, and keep it beside it. Raises WriteError."""
    opened = vault.open_index()
    words = evidence.load(vault)
    if words is None or evidence.has_outgrown(vault, words.lessons):
        words = evidence.count(vault, floor.foreign_prompts())
    counted: Counter[str] = Counter()
    for each in foreign():
        counted.update({word for line in each.lines for word in failure.words_of_line(line)})
    weights = replace(words, in_prompts=dict(counted), prompts=len(foreign()))
    asked = [each for each in foreign() if not (each.is_none or each.is_assertion)]
    some = list(floor.titles_of(vault).items())[:MAX_TITLES]
    titles = {id: failure.read("", title) for id, title in some}
    titles = {id: each for id, each in titles.items() if not each.is_none}
    opened.store.load(warm=True)
    every = [*asked, *titles.values()]
    vectors = query.kept_vectors(vault, {text for each in every for text in _embedded(each)})

    def both(failed: Failure, without: str = "") -> list[float]:
        return [  # full text is asked once for both
            _search(vault, weights, failed, 1, kind, without).strength
            for kind in (vectors, dict[str, "np.ndarray"]())
        ]

    strong = [both(each) for each in asked]
    progress(len(asked), len(every))
    like = [both(each, id) for id, each in titles.items()]
    progress(len(every), len(every))
    floors = floor.floors_of_both(vault, like, strong, PASSING, PASSING_FOREIGN, USUAL)
    kept = Fitted(*floors, opened.lessons, weights.in_prompts, weights.prompts)
    evidence.keep(vault, _FILE, kept)
    return kept


def load(vault: Vault) -> Fitted | None:
    """Return the floor of the vault's index; None if none was fitted yet."""
    return evidence.kept(vault, _FILE, Fitted)


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
