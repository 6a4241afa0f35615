"""Recognise a draft that was seen before, also in other words, without its text.

Two drafts are the same by their words, by the model, or by the same evidence and some likeness. The
model alone recognises 12 of 30 honest rewordings (`rewordings.jsonl` among the tests), and no other
lesson; with a quote or prompt in common 29 (and 5 others), of one session 22 (and 2). A lower
`SAME_COSINE` does not pay: .7 recognises 18, but takes 2.3% of 1,870 notes for others, not 1.2%.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING

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
class Fingerprint:
    """A draft without its text.

    `words` are hashes of its distinct words, `evidence` one of each quote and each prompt that should
    find it, `session` the private id of one, and `vector` is the embedder's, as float16 in base 64.
    `is_draft` marks one that a rule made.
    """

    id: str
    at: str  # ISO 8601
    words: tuple[int, ...]
    embedder: str = ""
    vector: str = ""
    evidence: tuple[int, ...] = ()
    session: str = ""
    is_draft: bool = False


Like = tuple[str, str, float]  # the id, title and likeness of a lesson


@dataclass(frozen=True, slots=True)
class Comparison:
    """A draft beside the lessons and the rejected proposals of a vault; empty where there is no index.

    `same` is the id and title of a lesson that has this text; `near` are lessons like it, the most like
    first; `nearest` is the first however little it is like it, `closest` the first five. `categories`
    are all lessons' and the taxonomy's, with those above; `offered` are those to choose from, each with
    the title of one of its lessons, "" without any.
    """

    same: tuple[str, str] | None = None
    near: tuple[Like, ...] = ()
    nearest: Like | None = None
    closest: tuple[Like, ...] = ()
    categories: tuple[str, ...] = ()
    offered: Mapping[str, str] = field(default_factory=dict)
    rejected: bool = False
    embedder: str = ""
    vector: str = ""


NOT_COMPARED = Comparison()


def create(proposal: Proposal, compared: Comparison = NOT_COMPARED, when: str = "") -> Fingerprint:
    """Return the fingerprint of a proposal."""
    spoken = map(draft.words, (*proposal.quotes, *proposal.prompts, *proposal.fires_on))
    evidence = [" ".join(words) for words in spoken if len(words) >= MIN_EVIDENCE_WORDS]
    return Fingerprint(
        id=proposal.id,
        at=when,
        words=hashes(draft.words(f"{proposal.title} {proposal.text}")),
        embedder=compared.embedder,
        vector=compared.vector,
        evidence=hashes(evidence),
        session=proposal.session,
        is_draft=proposal.is_draft,
    )


def hashes(words: Sequence[str]) -> tuple[int, ...]:
    """Return up to `SIZE` numbers of 32 bits that stand for the distinct words of a text."""
    digests = {blake2b(word.encode(), digest_size=4).digest() for word in words}
    return tuple(sorted(int.from_bytes(digest) for digest in digests)[:SIZE])


def words_in_common(first: Iterable[int], second: Iterable[int]) -> float:
    """Return the share of words that two samples have in common, 0..1."""
    mine, theirs = {*first}, {*second}
    sample = sorted(mine | theirs)[:SIZE]
    return sum(word in mine and word in theirs for word in sample) / max(1, len(sample))


def find_same(wanted: Fingerprint, others: Iterable[Fingerprint]) -> Fingerprint | None:
    """Return the first fingerprint that is of the same draft, in whatever words; None for none.

    A draft by rule bars only drafts by rule: a model may say better what it is about.
    """
    vector, words, evidence = unpack(wanted.vector), frozenset(wanted.words), {*wanted.evidence}
    for other in others:
        if other.is_draft and not wanted.is_draft:
            continue
        min_words, min_cosine = SAME_WORDS, SAME_COSINE
        if wanted.session and wanted.session == other.session:
            min_words, min_cosine = SESSION_WORDS, SESSION_COSINE
        if evidence.intersection(other.evidence):
            min_words, min_cosine = EVIDENCE_WORDS, EVIDENCE_COSINE
        if wanted.embedder == other.embedder and cosine(vector, unpack(other.vector)) >= min_cosine:
            return other
        most = max(len(words), len(other.words), 1)
        may_be = len(words.intersection(other.words)) >= min_words * most  # a quick count first
        if may_be and words_in_common(words, other.words) >= min_words:
            return other
    return None


def pack(vector: np.ndarray) -> str:
    """Return a vector as float16 in base 64."""
    import numpy as np

    return base64.b64encode(np.asarray(vector, "<f2").tobytes()).decode()


def unpack(vector: str) -> np.ndarray | None:
    """Return a vector that was packed, float32[dimension]; None for ""."""
    if not vector:
        return None
    import numpy as np

    return np.frombuffer(base64.b64decode(vector), "<f2").astype(np.float32)


def cosine(one: np.ndarray | None, other: np.ndarray | None) -> float:
    """Return the cosine of two vectors, 0 where they are not of one model."""
    if one is None or other is None or len(one) != len(other):
        return 0.0
    return float(one @ other)
