"""Sentences set off in the text they are from."""

from __future__ import annotations

import re
from collections.abc import Iterable


def runs(text: str, sentences: Iterable[str]) -> list[tuple[str, bool]]:
    """Return a text in pieces that make it up, each with whether it is one of the sentences.

    Line breaks and spaces in a sentence need not be those of the text.
    """
    wanted = [r"\s+".join(map(re.escape, sentence.split())) for sentence in sentences]
    wanted = [pattern for pattern in wanted if pattern]
    if not wanted:
        return [(text, False)] if text else []
    longest_first = sorted(wanted, key=len, reverse=True)  # one may begin as another does
    pieces = re.split(f"({'|'.join(longest_first)})", text)
    return [(piece, bool(number % 2)) for number, piece in enumerate(pieces) if piece]
