"""The sentences of a text that answer a question: by what they mean, else by the words they share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from vault_index.errors import EmbedderError
from vault_index.text.blocks import split_markdown

if TYPE_CHECKING:
    from vault_index.vault import Vault

BEST = 2  # sentences of a passage
MIN_CHARS, MAX_CHARS = 12, 500  # of a sentence that may be set off
MAX_EMBEDDED = 48  # sentences, over all passages: some 5 ms each
WORDS_WEIGHT = 0.3  # of the share of the question's words that a sentence has, beside the cosine
MIN_SCORE = 0.25
_WORD = re.compile(r"\w{3,}")


def best(vault: Vault, question: str, texts: Sequence[str]) -> list[tuple[str, ...]]:
    """Return, for each text, up to `BEST` of its sentences that answer a question, best first."""
    by_text = [
        [
            each
            for each in dict.fromkeys(split_markdown(text))
            if MIN_CHARS <= len(each) <= MAX_CHARS
        ]
        for text in texts
    ]
    scores = _scores(vault, question, [each for several in by_text for each in several])
    ranked = (sorted(several, key=lambda each: -scores[each]) for several in by_text)
    return [tuple(each for each in some[:BEST] if scores[each] >= MIN_SCORE) for some in ranked]


def _scores(vault: Vault, question: str, sentences: Sequence[str]) -> dict[str, float]:
    question_words = words_of(question)
    shared = {
        each: len(question_words & words_of(each)) / max(1, len(question_words))
        for each in sentences
    }
    some = list(shared)[:MAX_EMBEDDED]
    try:
        embedder = vault.embedder
        if embedder is None or not some:
            return shared
        vectors = embedder.embed_documents(some) @ embedder.embed_queries([question])[0]
    except EmbedderError:
        return shared
    cosines = dict(zip(some, map(float, vectors), strict=True))
    return {each: cosines.get(each, 0.0) + WORDS_WEIGHT * share for each, share in shared.items()}


def words_of(text: str) -> set[str]:
    """Return the words of a text as far as they are compared."""
    # the beginning stands for the stem
    return {word[:6] for word in _WORD.findall(text.casefold())}


def runs(text: str, sentences: Iterable[str]) -> list[tuple[str, bool]]:
    """Return a text in pieces that make it up, each with whether it is one of the sentences.

    Line breaks and spaces may differ from the text.
    """
    wanted = [r"\s+".join(map(re.escape, sentence.split())) for sentence in sentences]
    # the longest first: one may begin as another does
    several = "|".join(sorted(filter(None, wanted), key=len, reverse=True))
    pieces = re.split(f"({several})", text) if several else [text]
    return [(piece, bool(number % 2)) for number, piece in enumerate(pieces) if piece]
