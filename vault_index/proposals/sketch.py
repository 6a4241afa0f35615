"""What recognises a draft that was seen before, also in other words: no text can be read from it.

Two drafts are the same by their words, by the model, or by the same evidence and some likeness: two
lessons of one session are often about one subject, and seldom quote the same line.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from vault_index.proposals import draft

if TYPE_CHECKING:
    import numpy as np

    from vault_index.proposals.draft import Proposal

SAME_WORDS = 0.8  # of the words of both texts together: one in ten was changed
SAME_COSINE = 0.9
QUOTE_WORDS = 0.2  # the same with a quote in common
QUOTE_COSINE = 0.6
SIZE = 256  # hashes kept of a text: the smallest, a fair sample of its words
MIN_QUOTE_WORDS = 4  # of a quote: a shorter one is evidence of anything


@dataclass(frozen=True, slots=True)
class Sketch:
    """A draft without its text.

    `words` are hashes of its distinct words, `quotes` one of each quote, and `vector` is the
    embedder's, as float16 in base 64.
    """

    id: str
    at: str  # ISO 8601
    words: tuple[int, ...]
    embedder: str = ""
    vector: str = ""
    quotes: tuple[int, ...] = ()


def of(proposal: Proposal, compared: Mapping[str, Any], at: str = "") -> Sketch:
    """Return the sketch of a proposal. `compared` is what `likeness.of` returned of it, if anything."""
    embedder, vector = (str(compared.get(key) or "") for key in ("embedder", "vector"))
    return of_text(
        proposal.id, proposal.title, proposal.text, proposal.quotes, embedder, vector, at
    )


def of_text(
    id: str,
    title: str,
    text: str,
    quotes: Sequence[str] = (),
    embedder: str = "",
    vector: str = "",
    at: str = "",
) -> Sketch:
    """Return the sketch of a text with its evidence."""
    spoken = [words for words in map(draft.words, quotes) if len(words) >= MIN_QUOTE_WORDS]
    return Sketch(
        id=id,
        at=at,
        words=hashed(draft.words(f"{title} {text}")),
        embedder=embedder,
        vector=vector,
        quotes=hashed([" ".join(words) for words in spoken]),
    )


def hashed(words: Sequence[str]) -> tuple[int, ...]:
    """Return up to `SIZE` numbers of 32 bits that stand for the distinct words of a text."""
    digests = {blake2b(word.encode(), digest_size=4).digest() for word in words}
    return tuple(sorted(int.from_bytes(digest) for digest in digests)[:SIZE])


def words_in_common(own: Sequence[int], other: Sequence[int]) -> float:
    """Return how much two samples of words have in common, 0..1."""
    sample = sorted({*own, *other})[:SIZE]
    both = {*own} & {*other}
    return sum(word in both for word in sample) / len(sample) if sample else 0.0


def same(own: Sketch, others: Iterable[Sketch]) -> Sketch | None:
    """Return the first of some sketches that is of the same draft, in whatever words; None for none."""
    every = list(others)
    cosines = _cosines(own, every)
    for other, cosine in zip(every, cosines, strict=True):
        alike = words_in_common(own.words, other.words)
        if alike >= SAME_WORDS or cosine >= SAME_COSINE:
            return other
        if {*own.quotes} & {*other.quotes} and (alike >= QUOTE_WORDS or cosine >= QUOTE_COSINE):
            return other
    return None


def packed(vector: np.ndarray) -> str:
    """Return a vector as float16 in base 64."""
    import numpy as np

    return base64.b64encode(np.asarray(vector, "<f2").tobytes()).decode()


def unpacked(vector: str) -> np.ndarray | None:
    """Return a vector that was packed, float32[dimension]; None for ""."""
    if not vector:
        return None
    import numpy as np

    return np.frombuffer(base64.b64decode(vector), "<f2").astype(np.float32)


def _cosines(own: Sketch, others: Sequence[Sketch]) -> list[float]:
    """Return how like the model finds each; 0 where it has not seen both."""
    mine = unpacked(own.vector)
    return [_cosine(mine, other) if other.embedder == own.embedder else 0.0 for other in others]


def _cosine(mine: np.ndarray | None, other: Sketch) -> float:
    vector = unpacked(other.vector)
    if mine is None or vector is None or len(vector) != len(mine):
        return 0.0
    return float(vector @ mine)
