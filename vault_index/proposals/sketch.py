"""What recognises a draft that was seen before, also in other words: no text can be read from it.

Two drafts are the same by their words, by the model, or by the same evidence and some likeness. Over
30 lessons, each with an honest rewording and with another lesson on its subject (`revocabulary.jsonl`
among the tests): by the model alone 12 rewordings are recognised and no other lesson, and 1.2% of 1,870
notes are taken for one of 100 others; with a quote or prompt in common 29 are (and 5 others),
of one session 22 (and 2). A lower `SAME_COSINE` does not pay: .7 recognises 18, and 2.3% of the notes.
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
SAME_COSINE = 0.75
EVIDENCE_WORDS, EVIDENCE_COSINE = 0.2, 0.6  # with a quote or a prompt in common
SESSION_WORDS, SESSION_COSINE = 0.25, 0.7  # of one session
SIZE = 256  # hashes kept of a text: the smallest, a fair sample of its words
MIN_EVIDENCE_WORDS = 4  # of a quote or prompt: a shorter one is evidence of anything


@dataclass(frozen=True, slots=True)
class Sketch:
    """A draft without its text.

    `words` are hashes of its distinct words, `evidence` one of each quote and each prompt that should
    find it, `session` the private id of one, and `vector` is the embedder's, as float16 in base 64.
    """

    id: str
    at: str  # ISO 8601
    words: tuple[int, ...]
    embedder: str = ""
    vector: str = ""
    evidence: tuple[int, ...] = ()
    session: str = ""


def of(proposal: Proposal, compared: Mapping[str, Any], at: str = "") -> Sketch:
    """Return the sketch of a proposal. `compared` is what `likeness.of` returned of it, if anything."""
    embedder, vector = (str(compared.get(key) or "") for key in ("embedder", "vector"))
    spoken = map(draft.words, (*proposal.quotes, *proposal.fires_on))
    evidence = [" ".join(words) for words in spoken if len(words) >= MIN_EVIDENCE_WORDS]
    return Sketch(
        id=proposal.id,
        at=at,
        words=hashed(draft.words(f"{proposal.title} {proposal.text}")),
        embedder=embedder,
        vector=vector,
        evidence=hashed(evidence),
        session=proposal.session,
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


def alike_enough(own: frozenset[int], other: Sequence[int], least: float) -> bool:
    """Whether two samples of words have a share in common; most are told apart by a quick count."""
    most = max(len(own), len(other), 1)
    if len(own.intersection(other)) < least * most:
        return False
    return words_in_common(sorted(own), other) >= least


def same(own: Sketch, others: Iterable[Sketch]) -> Sketch | None:
    """Return the first of some sketches that is of the same draft, in whatever words; None for none."""
    mine, mine_words = unpacked(own.vector), frozenset(own.words)
    for other in others:
        cosine = _cosine(mine, other) if own.embedder == other.embedder else 0.0
        words, model = SAME_WORDS, SAME_COSINE
        if own.session and own.session == other.session:
            words, model = SESSION_WORDS, SESSION_COSINE
        if {*own.evidence} & {*other.evidence}:
            words, model = EVIDENCE_WORDS, EVIDENCE_COSINE
        if cosine >= model or alike_enough(mine_words, other.words, words):
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


def _cosine(mine: np.ndarray | None, other: Sketch) -> float:
    vector = unpacked(other.vector)
    if mine is None or vector is None or len(vector) != len(mine):
        return 0.0
    return float(vector @ mine)
