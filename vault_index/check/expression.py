"""A regular expression as a tree, as far as asking for plain words before a search needs it.

Zero-width parts are left out, except where they say that a match begins a line or the text. What this
module does not understand is `WILD`: any characters, any number of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

FEW_CHARS = 8  # of a class that is spelled out
_SPAN = 64  # of more characters it is not looked at which they are
MANY = 1_000_000  # a repeat without an end
_HEX_DIGITS = {"x": 2, "u": 4, "U": 8}  # that follow such an escape
_PLAIN = re.compile(r"[^\\\[\](){}|.^$?*+]+(?![?*+{])")
_SOLID = re.compile(r"[\w+/=-]*")


@dataclass(frozen=True, slots=True)
class Char:
    """One character: one of `few`, in lower case, or unknown.

    `solid`: it is a letter, a digit or one of `_+/=-`.
    """

    few: frozenset[str] | None
    solid: bool


@dataclass(frozen=True, slots=True)
class Text:
    """Characters that follow each other, in lower case."""

    text: str


@dataclass(frozen=True, slots=True)
class Sequence:
    """Parts that follow each other."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """Parts of which one matches."""

    ways: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """A part that matches `low` to `high` times in a row."""

    part: Node
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Ahead:
    """What must follow here; it takes no characters."""

    part: Node


@dataclass(frozen=True, slots=True)
class Start:
    """The beginning of a line, or of the text."""

    of_text: bool


Node = Char | Text | Sequence | Choice | Repeat | Ahead | Start
NOTHING = Sequence(())
WILD = Repeat(Char(None, solid=False), 0, MANY)


@lru_cache(maxsize=64)  # needs and beginnings are asked one after the other
def tree(regex: str) -> Node:
    """Return the tree of a regular expression."""
    return _Reader(regex).choice()


class _Reader:
    """Reads a regular expression once, from left to right."""

    def __init__(self, regex: str) -> None:
        self._regex = regex
        self._at = 0

    def choice(self) -> Node:
        """Read up to the bracket that closes this group, or to the end."""
        ways = [self._sequence()]
        while self._next_is("|"):
            ways.append(self._sequence())
        return ways[0] if len(ways) == 1 else Choice(tuple(ways))

    def _next_is(self, text: str) -> bool:
        if not self._regex.startswith(text, self._at):
            return False
        self._at += len(text)
        return True

    def _take(self) -> str:
        self._at += 1
        return self._regex[self._at - 1]

    def _sequence(self) -> Node:
        parts: list[Node] = []
        while self._at < len(self._regex) and self._regex[self._at] not in "|)":
            if plain := _PLAIN.match(self._regex, self._at):
                self._at = plain.end()
                parts.append(_text(plain[0]))
                continue
            part = self._part()
            low, high = self._repeats()
            if (low, high) != (1, 1):
                part = NOTHING if isinstance(part, Ahead | Start) else Repeat(part, low, high)
            if part != NOTHING:
                parts.append(part)
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _part(self) -> Node:
        char = self._take()
        if char == "(":
            return self._group()
        if char == "[":
            return self._class()
        if char == "\\":
            return self._escape()
        if char == ".":
            return Char(None, solid=False)
        if char == "^":
            return Start(of_text=False)
        return NOTHING if char == "$" else _text(char)

    def _group(self) -> Node:
        ahead = behind = negated = False
        if self._next_is("?"):
            negated = self._next_is("!")
            behind = self._next_is("<!") or self._next_is("<=")
            ahead = self._next_is("=")
            if self._next_is("P="):
                self._at = self._regex.index(")", self._at) + 1
                return WILD
            if self._next_is("P<"):
                self._at = self._regex.index(">", self._at) + 1
            elif not (negated or behind or ahead):
                while self._take() not in ":)":  # flags
                    pass
                if self._regex[self._at - 1] == ")":
                    return NOTHING
        inside = self.choice()
        self._at += 1  # the bracket
        if ahead:
            return Ahead(inside)
        return NOTHING if negated or behind else inside

    def _class(self) -> Node:
        negated = self._next_is("^")
        chars: set[str] = set()  # in lower case
        few = solid = not negated
        last, first = "", True
        while (char := self._take()) != "]" or first:
            first = False
            if char == "\\" and self._regex[self._at] in "wWdDsSnrtfv":
                kind = self._take()
                few = False
                solid = solid or kind == "W" if negated else solid and kind in "wd"
                last = ""
                continue
            if char == "\\":
                char = self._literal()
            if char == "-" and last and self._regex[self._at] != "]":
                end = self._take()
                span = range(ord(last), ord(self._literal() if end == "\\" else end) + 1)
            else:
                span = range(ord(char), ord(char) + 1)
            last = char
            few = few and len(span) <= FEW_CHARS
            chars |= {fold(chr(code).lower()) for code in span[:FEW_CHARS]}
            if not negated:
                members = "".join(map(chr, span[:_SPAN]))
                solid = solid and len(span) <= _SPAN and bool(_SOLID.fullmatch(members))
        few = few and len(chars) <= FEW_CHARS and chars.isdisjoint("\n\t")
        return Char(frozenset(chars) if few else None, solid)

    def _literal(self) -> str:
        """Read an escape of a single character, after its backslash."""
        char = self._take()
        if digits := _HEX_DIGITS.get(char):
            self._at += digits
            return chr(int(self._regex[self._at - digits : self._at], 16))
        return char

    def _escape(self) -> Node:
        char = self._take()
        if char in _HEX_DIGITS:
            self._at -= 1
            return _text(self._literal())
        if char in "dwsWDS":
            return Char(None, solid=char in "dw")
        if char == "A":
            return Start(of_text=True)
        if char in "bBZ":
            return NOTHING
        if char in "nrtfv":
            return Char(None, solid=False)  # a line may have been joined with the next
        return _text(char) if not char.isalnum() else WILD

    def _repeats(self) -> tuple[int, int]:
        """Read a quantifier; return how often the part before it matches."""
        low, high = 1, 1
        if self._next_is("{"):
            end = self._regex.index("}", self._at)
            least, comma, most = self._regex[self._at : end].partition(",")
            self._at = end + 1
            low = int(least or 0)
            high = int(most or MANY) if comma else low
        elif self._at < len(self._regex) and self._regex[self._at] in "?*+":
            char = self._take()
            low, high = int(char == "+"), 1 if char == "?" else MANY
        else:
            return low, high
        self._next_is("?")
        return low, high


def _text(text: str) -> Text:
    return Text(fold(text.lower()))


def fold(lowered: str) -> str:
    """Return a lower-case text with one form of the letters that `re` takes for the same."""
    if lowered.isascii():
        return lowered
    for letter, same in _SAME:  # several times as fast as `translate`
        lowered = lowered.replace(letter, same)
    return lowered


_SAME = (("\u017f", "s"), ("\u0131", "i"), ("\u03c2", "\u03c3"))
