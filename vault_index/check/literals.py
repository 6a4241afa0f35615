"""What a text must contain so that a regular expression can match in it, as plain words.

Most texts have none of the words that a pattern needs. Asking for the words first is ten times as
fast as searching with each expression, and cannot lose a match: where this module does not
understand a part of an expression, it asks for nothing.
"""

from __future__ import annotations

import functools
import itertools
import re
from dataclasses import dataclass, field

_MIN_CHARS = 3  # fewer are in every text; letters beyond ASCII say more
_HEX_DIGITS = {"x": 2, "u": 4, "U": 8}  # that follow such an escape
_PLAIN = re.compile(r"[^\\\[\](){}|.^$?*+]+(?![?*+{])")
_Words = frozenset[str]  # a text must contain one of them


@dataclass(frozen=True, slots=True)
class Needs:
    """Ways in which a regular expression can match: of each way, a text needs a word of each set.

    Without ways, any text may match.
    """

    ways: tuple[tuple[dict[str, list[str]], ...], ...]

    def met_by(self, lowered: str) -> bool:
        """Whether the expression may match in a text, which is in lower case."""
        heads = _pieces(lowered)
        for way in self.ways:
            for words in way:
                if not _has_one(lowered, heads, words):
                    break
            else:
                return True
        return not self.ways


@functools.cache
def needs(regex: str) -> Needs:
    """Return what a text must contain so that a regular expression can match."""
    ways = _Reader(regex).ways()
    if not all(ways):
        return Needs(())
    seldom_first = [sorted(way, key=_worth, reverse=True) for way in ways]
    return Needs(tuple(tuple(_by_head(words) for words in way) for way in seldom_first))


def _by_head(words: _Words) -> dict[str, list[str]]:
    heads: dict[str, list[str]] = {}
    for word in sorted(words):
        heads.setdefault(word[:_MIN_CHARS], []).append(word)
    return heads


def _has_one(lowered: str, heads: frozenset[str], words: dict[str, list[str]]) -> bool:
    return not heads.isdisjoint(words) and any(
        word in lowered for head in words if head in heads for word in words[head]
    )


@functools.lru_cache(maxsize=4)  # all patterns ask about the same text
def _pieces(lowered: str) -> frozenset[str]:
    """Return each piece of a text that a word may begin with."""
    pieces = set(map("".join, zip(lowered, lowered[1:], lowered[2:], strict=False)))
    if not lowered.isascii():
        pieces.update(map("".join, itertools.pairwise(lowered)))
    return frozenset(pieces)


@dataclass(slots=True)
class _Sequence:
    """The words that a sequence needs, as far as it is read."""

    words: list[_Words] = field(default_factory=list)
    run: str = ""

    def end_run(self) -> None:
        if len(self.run) >= _MIN_CHARS or (len(self.run) > 1 and not self.run.isascii()):
            self.words.append(frozenset([self.run]))
        self.run = ""


class _Reader:
    """Reads a regular expression once, from left to right."""

    def __init__(self, regex: str) -> None:
        self._regex = regex
        self._at = 0

    def ways(self) -> list[list[_Words]]:
        """Return for each alternative the words that it needs."""
        ways = [self._sequence()]
        while self._next_is("|"):
            ways.append(self._sequence())
        return ways

    def _next_is(self, text: str) -> bool:
        if not self._regex.startswith(text, self._at):
            return False
        self._at += len(text)
        return True

    def _take(self) -> str:
        self._at += 1
        return self._regex[self._at - 1]

    def _sequence(self) -> list[_Words]:
        seen = _Sequence()
        while self._at < len(self._regex) and self._regex[self._at] not in "|)":
            if plain := _PLAIN.match(self._regex, self._at):
                self._at = plain.end()
                seen.run += plain[0].lower()
                continue
            char = self._take()
            literal, words = "", None
            if char == "(":
                words = self._group()
            elif char == "[":
                self._skip_class()
            elif char == "\\":
                literal = self._escape()
            elif char not in ".^$":
                literal = char.lower()
            repeated, optional = self._repeats()
            if literal and not optional:
                seen.run += literal
            if not literal or repeated:
                seen.end_run()
            if words and not optional:
                seen.words.append(words)
        seen.end_run()
        return seen.words

    def _group(self) -> _Words | None:
        """Return the words of which a group needs one, if it is one that must match."""
        negated = False
        if self._next_is("?"):
            negated = self._next_is("!") or self._next_is("<!")
            if self._next_is("P="):
                self._at = self._regex.index(")", self._at) + 1
                return None
            if self._next_is("P<"):
                self._at = self._regex.index(">", self._at) + 1
            elif not (negated or self._next_is("=") or self._next_is("<=")):
                while self._take() not in ":)":  # flags
                    pass
                if self._regex[self._at - 1] == ")":
                    return None
        ways = self.ways()
        self._at += 1  # the bracket
        if negated or not all(ways):
            return None
        return frozenset().union(*(max(way, key=_worth) for way in ways))

    def _skip_class(self) -> None:
        self._next_is("^")
        self._next_is("]")
        while (char := self._take()) != "]":
            self._at += char == "\\"

    def _escape(self) -> str:
        char = self._take()
        self._at += _HEX_DIGITS.get(char, 0)
        return "" if char.isalnum() else char

    def _repeats(self) -> tuple[bool, bool]:
        """Return whether a quantifier follows, and whether it allows for nothing."""
        start = self._at
        if self._next_is("{"):
            self._at = self._regex.index("}", self._at) + 1
        elif self._at < len(self._regex) and self._regex[self._at] in "?*+":
            self._at += 1
        if start == self._at:
            return False, False
        quantifier = self._regex[start : self._at]
        self._next_is("?")
        return True, quantifier[0] in "?*" or quantifier.startswith(("{0", "{,"))


def _worth(words: _Words) -> tuple[int, int]:
    """Rank words by how seldom a text has one of them: long and few."""
    return min(map(len, words)), -len(words)
