"""Score a piece of text as prompt injection: the sum of the weights of its features.

The weights are learned from texts (`python -m benchmarks.train_scorer`). They find orders to an agent
that no pattern describes yet, and tell harmless text that a pattern matches by chance from orders.
"""

from __future__ import annotations

import array
import base64
import functools
import json
import re
import tomllib
import zlib
from collections.abc import Iterable, Iterator
from itertools import combinations, pairwise
from pathlib import Path
from typing import NamedTuple

# Features of a piece of text, as numbers: its words, pairs of words, and the ideas they stand for.
#
# An idea, such as "agent", "conceal" or "secret", is a list of words in `words.toml`. A number below
# IDEA_FEATURES stands for an idea or for two of them together; the numbers above are hashes of words.
WORD_BITS = 15
MAX_IDEAS = 48
# ideas alone, first of a sentence, and pairs: in this order, in a sentence, in the piece
_FIRST, _ORDERED, _TOGETHER, _AROUND = (
    MAX_IDEAS * n for n in (1, 2, 2 + MAX_IDEAS, 2 + 2 * MAX_IDEAS)
)
IDEA_FEATURES = MAX_IDEAS * (2 + 3 * MAX_IDEAS)
COUNT = IDEA_FEATURES + (1 << WORD_BITS)

PIECE_CHARS = 350
_REACH = 4  # words from one idea to the next that count as in order
_WINDOW = 2  # sentences
_STEM = 6  # letters of a word that count
_LONGEST_PREFIX = 16

# what stands for an address or a mark, whatever it says
_MARKS = (
    (re.compile(r"(?:https?|wss?|ftp)://[^\s)>\"'`]+"), " xurlx "),
    (re.compile(r"\b[\w.+-]{1,60}@[\w-]{1,60}\.[\w.-]{1,60}"), " xmailx "),
    (re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}\b"), " xhostx "),
    (re.compile(r"<!--|^\[//\]:", re.M), " xcommentx "),
    (re.compile(r"</?\|?([a-z_!-]{1,40})[^>\n]{0,60}>|\[/?inst\]"), r" xtagx \1 "),
)
_TOKEN = re.compile(
    r"\.[a-z]{2,}(?:[./_]\w+)*|--[a-z][\w-]+|[^\W_]+(?:['\u2019][a-z]{1,2}\b)?(?:-[^\W_]+)*"
)
_EAST_ASIAN = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_SENTENCE_END = re.compile("(?<=[.!?:;])\\s+|\n+|(?<=[\u3002\uff01\uff1f\uff1b])")
_PARAGRAPH_END = re.compile(r"\n\s*\n|^---[ \t]*$", re.M)  # frontmatter is not of the text below it


class _Words(NamedTuple):
    whole: dict[str, frozenset[int]]
    prefix: dict[str, frozenset[int]]
    phrases: dict[str, list[tuple[str, int]]]  # by their first word
    anywhere: list[tuple[str, int]]
    names: dict[str, int]


def pieces(text: str) -> Iterator[tuple[int, str]]:
    """Yield paragraphs, long ones in parts of whole sentences, each with the index it begins at."""
    start = 0
    for paragraph in _PARAGRAPH_END.split(text):
        start = text.index(paragraph, start)
        index, part = start, ""
        for sentence in _sentences(paragraph):
            begin = text.index(sentence, index + len(part))
            if part and begin + len(sentence) - index > PIECE_CHARS:
                yield index, part
                index, part = begin, sentence
            else:
                index = index if part else begin
                part = text[index : begin + len(sentence)]
        if part:
            yield index, part
        start += len(paragraph)


def windows(piece: str) -> Iterator[tuple[int, str]]:
    """Yield each two sentences of a longer piece that follow each other, and where they begin.

    An order among harmless sentences is in one of them almost alone.
    """
    spans, last = [], 0
    for sentence in _sentences(piece):
        last = piece.index(sentence, last)
        spans.append((last, last + len(sentence)))
        last += len(sentence)
    if len(spans) > _WINDOW:
        yield from ((start, piece[start:end]) for (start, _), (_, end) in pairwise(spans))


def numbers(piece: str) -> set[int]:
    """Return the numbers of all features of a piece, each below COUNT."""
    text = piece.lower()
    for mark, name in _MARKS:
        text = mark.sub(name, text)
    features: set[int] = set()
    everywhere: set[int] = set()
    for sentence in _sentences(text):
        tokens = _TOKEN.findall(sentence)
        by_token = [_ideas(token) for token in tokens]
        present = _phrase_ideas(tokens).union(*by_token)
        if _EAST_ASIAN.search(sentence):
            present.update(idea for word, idea in _words().anywhere if word in sentence)
        if by_token:
            features.update(_FIRST + idea for idea in by_token[0])
        features.update(_in_order(by_token))
        features.update(_pairs(_TOGETHER, present))
        features.update(_word_features(tokens))
        everywhere |= present
    features |= everywhere
    features.update(_pairs(_AROUND, everywhere))
    return features


def _sentences(text: str) -> Iterator[str]:
    return (sentence for sentence in _SENTENCE_END.split(text) if sentence.strip())


def _pairs(base: int, ideas: Iterable[int]) -> Iterator[int]:
    pairs = combinations(sorted(ideas), 2)
    return (base + first * MAX_IDEAS + second for first, second in pairs)


def _in_order(by_token: list[frozenset[int]]) -> Iterator[int]:
    """Yield the features of ideas that follow each other closely: "not" and then "tell"."""
    for index, ideas in enumerate(by_token):
        if ideas:
            following = frozenset().union(*by_token[index + 1 : index + 1 + _REACH])
            for first in ideas:
                for second in following - {first}:
                    yield _ORDERED + first * MAX_IDEAS + second


def _word_features(tokens: list[str]) -> Iterator[int]:
    stems = []
    for token in tokens:
        if _EAST_ASIAN.match(token):
            stems += [token[index : index + 2] for index in range(max(1, len(token) - 1))]
        else:
            stems.append(token[:_STEM] if token.isalpha() else token)
    before = "<"
    for stem in stems:
        yield _hashed(stem)
        yield _hashed(f"{before} {stem}")
        before = stem
    yield _hashed(f"{before} >")


@functools.lru_cache(maxsize=50_000)
def _hashed(word: str) -> int:
    return IDEA_FEATURES + (zlib.crc32(word.encode("utf-8", "replace")) >> (32 - WORD_BITS))


def _phrase_ideas(tokens: list[str]) -> set[int]:
    phrases = _words().phrases
    starts = {token for token in tokens if token in phrases}
    if not starts:
        return set()
    sentence = f" {' '.join(tokens)}"
    return {idea for start in starts for text, idea in phrases[start] if f" {text}" in sentence}


@functools.lru_cache(maxsize=20_000)
def _ideas(token: str) -> frozenset[int]:
    words = _words()
    if token.startswith("--"):
        return words.whole.get(token, frozenset()) | {words.names["flag"]}
    ends = range(4, min(len(token), _LONGEST_PREFIX) + 1)
    ideas = words.whole.get(token, frozenset())
    ideas = ideas.union(*(words.prefix.get(token[:end], ()) for end in ends))
    first, *rest = token.split("-")
    return ideas.union(*(_ideas(part) for part in rest if part)) if rest and first else ideas


@functools.cache
def _words() -> _Words:
    """Read `words.toml`."""
    table = tomllib.loads((Path(__file__).parent / "words.toml").read_text("utf-8"))
    names = {name: number for number, name in enumerate(table)}
    words = _Words({}, {}, {}, [], names)
    for name, listed in table.items():
        idea = names[name]
        for word in listed.split():
            if _EAST_ASIAN.search(word):
                words.anywhere.append((word, idea))
            elif "_" in word:
                text = word.replace("_", " ")
                words.phrases.setdefault(text.split()[0], []).append((text, idea))
            else:
                ideas = words.whole if word.startswith("=") or len(word) < 4 else words.prefix
                key = word.removeprefix("=")
                ideas[key] = ideas.get(key, frozenset()) | {idea}
    return words


# Chosen on notes that the weights were not learned from: of 1,870 one is held back and seven are
# warned of, all patterns together.
SURE = 1.1  # with what signs add, and a sign there is: a lesson waits until a person has looked
CERTAIN = 2.0  # the same, without a sign
SUSPECT = 0.8  # a warning, even if no pattern matches
POSSIBLE = -1.5  # one piece in a hundred; the others are not looked at again
UNLIKELY = 0.15  # a pattern that warns is believed only above


def scores(text: str) -> Iterator[tuple[int, str, float]]:
    """Yield the pieces of a text as it is read, where each begins, and its score.

    Two sentences that score higher than their piece come in its place where it may be an attack.
    """
    for start, piece in pieces(text):
        here = [(score(piece), start, piece)]
        if here[0][0] > POSSIBLE:
            here += [(score(part), start + index, part) for index, part in windows(piece)]
        best, start, piece = max(here)
        yield start, piece, best


def score(piece: str) -> float:
    """Return the score of a piece of text as it is read; above 0 it is more likely an attack."""
    bias, unit, weights = _model()
    return bias + unit * sum(map(weights.__getitem__, numbers(piece)))


@functools.cache
def _model() -> tuple[float, float, array.array[int]]:
    stored = json.loads((Path(__file__).parent / "weights.json").read_text("utf-8"))
    weights = array.array("b", base64.b64decode(stored["weights"]))
    return stored["bias"], stored["unit"], weights
