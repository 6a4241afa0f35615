"""Where in a text a match of a regular expression can begin, found by the words that it begins with.

Few places of a text qualify. Trying only those yields the matches of `finditer`, many times as fast.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

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

_MAX_BEGINNINGS = 80
_BEGINNING_CHARS = 8  # more add nothing
_MAX_BEFORE = (
    64  # characters between the beginning of a match and the words that it is looked up by
)


@dataclass(frozen=True, slots=True)
class Beginnings:
    """Where a match can begin: `least` to `most` characters before one of the words.

    Without words, at the beginning of a line (`at_lines`) or of the text.
    """

    words: tuple[str, ...] | None
    least: int = 0
    most: int = 0
    at_lines: bool = False


@functools.cache
def beginnings(regex: str) -> Beginnings | None:
    """Return where a match of a regular expression can begin; None where that is not known."""
    root = tree(regex)
    starts = {_start(way) for way in (root.ways if isinstance(root, Choice) else (root,))}
    if None not in starts:
        return Beginnings(None, at_lines=Start(of_text=False) in starts)
    parts = list(_flat(root))
    least = most = 0
    while True:
        words = _first_texts(parts)
        if words is not None:
            return Beginnings(tuple(sorted(words)), least, most)
        if not parts:
            return None
        low, high = _width(parts.pop(0))
        least, most = least + low, most + high
        if most > _MAX_BEFORE:
            return None


def _start(node: Node) -> Start | None:
    """Return the beginning of a line or text that a node begins with, if it does."""
    first = next(_flat(node), None)
    return first if isinstance(first, Start) else None


def _flat(node: Node) -> Iterator[Node]:
    """Yield the parts of a sequence, of sequences in it those of theirs; nothing that looks ahead."""
    if isinstance(node, Sequence):
        for part in node.parts:
            yield from _flat(part)
    elif not isinstance(node, Ahead):
        yield node


def _first_texts(parts: Iterable[Node]) -> frozenset[str] | None:
    """Return texts of which a match of these parts begins with one; None if they are not known."""
    begun: set[tuple[str, bool]] = {("", True)}  # a text, and whether more of it is known
    for part in parts:
        if not any(is_open for _, is_open in begun):
            break
        begun = _longer(begun, _begins(part))
    texts = {text[:_BEGINNING_CHARS] for text, _ in begun}
    if "" in texts or len(texts) > _MAX_BEGINNINGS:
        return None
    return frozenset(texts)


def _longer(
    begun: set[tuple[str, bool]], following: set[tuple[str, bool]]
) -> set[tuple[str, bool]]:
    """Return texts continued by the beginnings of what follows, unless they get too many."""
    going = {text for text, is_open in begun if is_open and len(text) < _BEGINNING_CHARS}
    done = {(text, False) for text, is_open in begun if not is_open or text not in going}
    if len(going) * len(following) > _MAX_BEGINNINGS and going != {""}:
        return done | {(text, False) for text in going}
    return done | {(text + more, is_open) for text in going for more, is_open in following}


def _begins(node: Node) -> set[tuple[str, bool]]:
    """Return the texts that a node can begin with, each with whether it matches that and no more."""
    if isinstance(node, Text):
        return {(node.text, True)}
    if isinstance(node, Char):
        return {(char, True) for char in node.few} if node.few else {("", False)}
    if isinstance(node, Choice):
        return set().union(*map(_begins, node.ways))
    if isinstance(node, Repeat):
        once = _begins(node.part)
        if node.high > 1:
            once = {(text, False) for text, _ in once}
        return once | {("", True)} if not node.low else once
    begun: set[tuple[str, bool]] = {("", True)}
    for part in node.parts if isinstance(node, Sequence) else ():
        begun = _longer(begun, _begins(part))
    return begun


def _width(node: Node) -> tuple[int, int]:
    """Return how many characters a node matches: at least, at most."""
    if isinstance(node, Text):
        return len(node.text), len(node.text)
    if isinstance(node, Char):
        return 1, 1
    if isinstance(node, Repeat):
        low, high = _width(node.part)
        return node.low * low, min(MANY, node.high * high)
    if isinstance(node, Choice):
        ways = [_width(way) for way in node.ways]
        return min(low for low, _ in ways), max(high for _, high in ways)
    if isinstance(node, Sequence):
        widths = [_width(part) for part in node.parts]
        return sum(low for low, _ in widths), min(MANY, sum(high for _, high in widths))
    return 0, 0


def places(where: Beginnings, text: str, lowered: str) -> list[int]:
    """Return the indices at which a match may begin, in order; `lowered` is as long as the text."""
    if where.words is None:
        lines = re.finditer("\n", text) if where.at_lines else ()
        return [0, *(end.end() for end in lines)]
    lowered = fold(lowered)
    indices: set[int] = set()
    for word in where.words:
        index = lowered.find(word)
        while index >= 0:
            indices.update(range(max(0, index - where.most), index - where.least + 1))
            index = lowered.find(word, index + 1)
    return sorted(indices)
