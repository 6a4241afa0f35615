"""Which of many words a text has: one pass over its tokens for all of them.

A word without spaces is in a text if it is in one of the text's tokens, and tokens recur: each is looked
at once.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Iterable

_TOKEN = re.compile(r"\w+")
_TOKENS = 50_000  # that are remembered
_LONG = 64  # letters of one that is not: a key, a line without spaces


@functools.cache
def is_token(word: str) -> bool:
    """Whether a word has no spaces or signs, so that one that `found_in` returns is in the text."""
    return _TOKEN.fullmatch(word) is not None


class Literals:
    """Some words in lower case, which may have spaces and signs."""

    def __init__(self, words: Iterable[str]) -> None:
        self._signs: list[str] = []  # without a letter or digit
        self._phrases: dict[str, list[tuple[str, frozenset[str]]]] = defaultdict(list)
        parts: set[str] = set()
        for word in sorted(set(words)):
            tokens = frozenset(_TOKEN.findall(word))
            if not tokens:
                self._signs.append(word)
            elif tokens != {word}:
                self._phrases[max(sorted(tokens), key=len)].append((word, tokens))
            parts |= tokens
        counts = Counter(piece for part in parts for piece in _pieces(part))
        self._by_piece: dict[str, list[str]] = defaultdict(list)
        for part in sorted(parts):
            rarest = min(_pieces(part), key=lambda piece: (counts[piece], piece), default=part)
            self._by_piece[rarest].append(part)
        self._in_known_token = functools.lru_cache(maxsize=_TOKENS)(self._in_token)

    def found_in(self, lowered: str) -> frozenset[str]:
        """Return all words that a text in lower case has, and phrases of which it has all parts."""
        tokens = set(_TOKEN.findall(lowered))
        long = {token for token in tokens if len(token) > _LONG}
        cached = map(self._in_known_token, tokens - long)
        found = set[str]().union(*cached, *map(self._in_token, long))
        phrases = [
            phrase
            for part in self._phrases.keys() & found
            for phrase, parts in self._phrases[part]
            if parts <= found
        ]
        signs = (sign for sign in self._signs if sign in lowered)
        return frozenset().union(found, phrases, signs)

    def _in_token(self, token: str) -> frozenset[str]:
        """Return the words, and the parts of phrases, that are in a token.

        A word is looked for only if the token has its rarest piece.
        """
        short = {*token, *map("".join, itertools.pairwise(token))}
        pieces = self._by_piece.keys() & (_pieces(token) | short)
        return frozenset(
            word for piece in pieces for word in self._by_piece[piece] if word in token
        )


def _pieces(text: str) -> frozenset[str]:
    return frozenset(map("".join, zip(text, text[1:], text[2:], strict=False)))
