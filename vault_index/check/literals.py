"""What a text must contain so that a regular expression can match in it, as plain words.

Most texts have none of the words that a pattern needs. Asking for words first is many times as fast as
searching with each expression, and cannot lose a match: where `expression.py` does not understand a
part, nothing is asked for.

    needs     the words of an expression; `met_by` a text or not
    Index     of many expressions, those that a text may match: one look for all
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from vault_index.check.expression import (
    MANY,
    Ahead,
    Char,
    Choice,
    Node,
    Repeat,
    Sequence,
    Start,
    Text,
    fold,
    tree,
)

_MIN_CHARS = 3  # fewer are in every text; signs and letters beyond ASCII say more
_MAX_WORDS = 8  # that neighbours make together: `(?:a|b) (?:c|d)` needs one of four
_MAX_BEFORE = (
    64  # characters between the beginning of a match and the words that it is looked up by
)
_SOLID = re.compile(r"[\w+/=-]{20,}")  # as in keys and addresses; words of prose are shorter
_LEAST_SOLID = 19
_OTHER = re.compile(r"[^\w+/=-]")
_SELDOM = frozenset("@$|<>\\{}=;&^~#![]%")
_Words = frozenset[str]  # a text must contain one of them


@dataclass(frozen=True, slots=True)
class View:
    """A text as words are looked up in it: in lower case, its pieces, its longest part as in a key."""

    lowered: str
    pieces: frozenset[str]
    longest: int


@functools.lru_cache(maxsize=8)  # all patterns ask about the same text
def view(lowered: str) -> View:
    """Return a text, in lower case, prepared for many questions."""
    lowered = fold(lowered)
    pieces = frozenset([*_pieces(lowered), *lowered])
    return View(lowered, pieces, max(map(len, _SOLID.findall(lowered)), default=_LEAST_SOLID))


@dataclass(frozen=True, slots=True)
class Way:
    """One way to match: a text needs a word of each set, and so many characters as in a key."""

    words: tuple[_Words, ...]  # the most telling set first
    solid: int

    def met_by(self, present: _Words | set[str], longest: int) -> bool:
        """Whether a text with these words has it all."""
        if self.solid > longest:
            return False
        return not any(words.isdisjoint(present) for words in self.words)


@dataclass(frozen=True, slots=True)
class Needs:
    """The ways in which a regular expression can match."""

    ways: tuple[Way, ...]

    def met_by(self, lowered: str) -> bool:
        """Whether the expression may match in a text, which is in lower case."""
        text = view(lowered)
        words = _Lexicon({word for way in self.ways for some in way.words for word in some})
        present = words.present(text)
        return any(way.met_by(present, text.longest) for way in self.ways)


@functools.cache
def needs(regex: str) -> Needs:
    """Return what a text must contain so that a regular expression can match."""
    root = tree(regex)
    ways: list[Way] = []
    simple: list[_Words] = []  # of ways that need one set: together they need one of all
    least = MANY
    for way in root.ways if isinstance(root, Choice) else (root,):
        words, solid = set(_closed(way)), _run(way).longest
        if len(words) == 1:
            simple += words
            least = min(least, solid)
        else:
            ways.append(Way(tuple(sorted(words, key=_worth, reverse=True)), solid))
    if simple:
        ways.append(Way((frozenset().union(*simple),), least))
    return Needs(tuple(ways))


class _Lexicon:
    """Words by the piece of each that the fewest of them have: most texts have few of the pieces."""

    def __init__(self, words: Iterable[str]) -> None:
        pieces = {word: _pieces(word) for word in words}
        counts = Counter(piece for some in pieces.values() for piece in some)
        self._by_piece: dict[str, list[tuple[str, list[str]]]] = {}
        for word, some in pieces.items():
            seldom = min(some, key=lambda piece: (counts[piece], piece))
            self._by_piece.setdefault(seldom, []).append((word, some))
        self._seldom = frozenset(self._by_piece)

    def present(self, text: View) -> set[str]:
        """Return the words whose pieces a text has, which are those that it has and a few others."""
        has, by_piece = text.pieces.issuperset, self._by_piece
        return {
            word
            for piece in self._seldom & text.pieces
            for word, pieces in by_piece[piece]
            if has(pieces)
        }


def _pieces(text: str) -> list[str]:
    """Return what of a text to look up first: three characters each, of a short word one."""
    if len(text) < _MIN_CHARS:
        return list(text)
    return [text[start : start + _MIN_CHARS] for start in range(len(text) - 2)]


class Index:
    """Regular expressions by a word that each needs."""

    def __init__(self) -> None:
        self._regexes: list[str] = []
        self.possible = functools.lru_cache(maxsize=8)(self._possible)

    def add(self, regexes: Iterable[str]) -> None:
        """Take in expressions; they are read when first asked about."""
        self._regexes += regexes

    @functools.cached_property
    def _ways(self) -> list[tuple[str, Way]]:
        return [(regex, way) for regex in self._regexes for way in needs(regex).ways]

    @functools.cached_property
    def _by_word(self) -> dict[str, list[int]]:
        """The ways by the words of the first set of each; under "" those that need none."""
        by_word: dict[str, list[int]] = {"": []}
        for number, (_, way) in enumerate(self._ways):
            for word in way.words[0] if way.words else [""]:
                by_word.setdefault(word, []).append(number)
        return by_word

    @functools.cached_property
    def _lexicon(self) -> _Lexicon:
        return _Lexicon({word for _, way in self._ways for some in way.words for word in some})

    def _possible(self, lowered: str) -> frozenset[str]:
        """Return the expressions that may match in a text, which is in lower case."""
        text, ways, by_word = view(lowered), self._ways, self._by_word
        present = self._lexicon.present(text)
        some = set(by_word[""]).union(*(by_word[word] for word in present if word in by_word))
        return frozenset(
            ways[number][0] for number in some if ways[number][1].met_by(present, text.longest)
        )


@dataclass(slots=True)
class _Needed:
    """The words that a sequence needs, as far as it is read; `run` is what its end may be."""

    words: list[_Words] = field(default_factory=list)
    run: _Words = frozenset([""])

    def add(self, run: _Words | None) -> None:
        """Go on with one of these texts; with None, with what is not known."""
        together = len(self.run) * len(run) if run else 0
        if run is None or together > max(_MAX_WORDS, len(run)):
            self.end_run()
        if run is not None:
            self.run = frozenset(a + b for a in self.run for b in run)

    def end_run(self) -> None:
        if all(map(_says_something, self.run)):
            self.words.append(self.run)
        self.run = frozenset([""])


def _says_something(word: str) -> bool:
    return len(word) > 1 or (word != "" and not word.isascii()) or not _SELDOM.isdisjoint(word)


def _needed(node: Node) -> _Needed:
    seen = _Needed()
    for part in node.parts if isinstance(node, Sequence) else (node,):
        if (texts := _texts(part)) is not None:
            seen.add(texts)
        elif isinstance(part, Repeat) and part.low and (texts := _texts(part.part)) is not None:
            seen.add(texts)  # `(?:ab)+` begins and ends with it
            seen.end_run()
        elif isinstance(part, Ahead):
            ahead = _needed(part.part)
            ahead.end_run()
            seen.words += ahead.words
        elif not isinstance(part, Start):
            seen.add(None)
            seen.words += _inside(part)
    return seen


def _inside(part: Node) -> list[_Words]:
    """Return the words that a part needs, unless it is a choice between a few texts."""
    if isinstance(part, Repeat):
        return _closed(part.part) if part.low else []
    if isinstance(part, Choice):
        ways = [_closed(way) for way in part.ways]
        best = [max(words, key=_worth) for words in ways if words]
        return [frozenset().union(*best)] if len(best) == len(ways) else []
    return _closed(part) if isinstance(part, Sequence) else []


def _closed(node: Node) -> list[_Words]:
    seen = _needed(node)
    seen.end_run()
    return seen.words


def _texts(node: Node) -> _Words | None:
    """Return all texts, in lower case, that a node matches, if they are few."""
    if isinstance(node, Text):
        return frozenset([node.text])
    if isinstance(node, Char):
        return node.few
    if isinstance(node, Choice):
        ways = [_texts(way) for way in node.ways]
        return frozenset().union(*(way for way in ways if way)) if all(ways) else None
    if isinstance(node, Sequence):
        texts: _Words = frozenset([""])
        for part in node.parts:
            if isinstance(part, Start):
                continue
            some = _texts(part)
            if some is None or len(texts) * len(some) > max(_MAX_WORDS, len(some)):
                return None
            texts = frozenset(a + b for a in texts for b in some)
        return texts
    if isinstance(node, Repeat) and node.low >= node.high - 1 and node.high == 1:
        some = _texts(node.part)
        return None if some is None else some | {""}
    return None


class _Run(NamedTuple):
    """At least so many characters as in a key: at the beginning, the end, anywhere; or all of it."""

    first: int = 0
    last: int = 0
    longest: int = 0
    solid: bool = True


def _run(node: Node) -> _Run:
    if isinstance(node, Text):
        runs = [len(part) for part in _OTHER.split(node.text)]
        return _Run(runs[0], runs[-1], max(runs), len(runs) == 1)
    if isinstance(node, Char):
        return _Run(1, 1, 1) if node.solid else _Run(solid=False)
    if isinstance(node, Sequence):
        return functools.reduce(_then, map(_run, node.parts), _Run())
    if isinstance(node, Choice):
        ways = [_run(way) for way in node.ways]
        return _Run(
            min(way.first for way in ways),
            min(way.last for way in ways),
            min(way.longest for way in ways),
            all(way.solid for way in ways),
        )
    if isinstance(node, Repeat):
        run = _run(node.part)
        if run.solid:
            return _Run(*3 * (node.low * run.longest,))
        return run if node.low else _Run(solid=False)
    return _Run()


def _then(run: _Run, other: _Run) -> _Run:
    return _Run(
        run.first + other.first if run.solid else run.first,
        run.last + other.last if other.solid else other.last,
        max(run.longest, other.longest, run.last + other.first),
        run.solid and other.solid,
    )


def _worth(words: _Words) -> tuple[int, int]:
    """Rank words by how seldom a text has one of them: long and few."""
    return min(map(len, words)), -len(words)
