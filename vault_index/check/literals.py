"""Which of many items a text may concern, by literal words of each: one pass over the text for all.

The text is cut into all its pieces of three letters. A word is looked for only if its rarest piece is
among them, so the time goes with the text, and hardly with the number of words.
"""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from collections.abc import Sequence


class Literals:
    """The words of items, by their places in a list; an item without words concerns every text."""

    def __init__(self, words: Sequence[Sequence[str]]) -> None:
        self._always = frozenset(place for place, own in enumerate(words) if not own)
        places: dict[str, set[int]] = defaultdict(set)
        for place, own in enumerate(words):
            for word in own:
                places[word].add(place)
        counts = Counter(piece for word in places for piece in _pieces(word))
        self._by_piece: dict[str, list[tuple[str, set[int]]]] = defaultdict(list)
        self._short: list[tuple[str, set[int]]] = []
        for word, own_places in places.items():
            if pieces := _pieces(word):
                rarest = min(pieces, key=lambda piece: (counts[piece], piece))
                self._by_piece[rarest].append((word, own_places))
            else:
                self._short.append((word, own_places))
        self._known = frozenset(self._by_piece)

    def places_in(self, lowered: str) -> list[int]:
        """Return the places of the items that have a word in a text in lower case, in order."""
        found = set(self._always)
        is_ascii = lowered.isascii()
        for word, places in self._short:
            if (word.isascii() or not is_ascii) and not places <= found and word in lowered:
                found |= places
        for piece in _pieces(lowered) & self._known:
            for word, places in self._by_piece[piece]:
                if not places <= found and word in lowered:
                    found |= places
        return sorted(found)


@functools.lru_cache(maxsize=8)  # the same text is asked about by several lists
def _pieces(text: str) -> frozenset[str]:
    return frozenset(map("".join, zip(text, text[1:], text[2:], strict=False)))
