"""Embedders for tests: small, deterministic, and counting what they were asked."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence

import numpy as np

from vault_index.errors import EmbedderError

_WORD = re.compile(r"\w+")


class WordEmbedder:
    """A bag of words, hashed into `dimension` numbers: texts that share words are near."""

    def __init__(self, name: str = "words", dimension: int = 64) -> None:
        self.name = name
        self.dimension = dimension
        self.documents: list[str] = []  # every text it embedded, in order
        self.queries: list[str] = []

    def embed_documents(self, texts: Sequence[str]) -> np.ndarray:
        self.documents += texts
        return self._vectors(texts)

    def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
        self.queries += texts
        return self._vectors(texts)

    def knows(self, _text: str) -> bool:
        return True

    def _vectors(self, texts: Sequence[str]) -> np.ndarray:
        vectors = [self._vector(text) for text in texts]
        return np.array(vectors, np.float32).reshape(len(texts), self.dimension)

    def _vector(self, text: str) -> np.ndarray:
        vector = np.full(self.dimension, 0.01, np.float32)  # not even no words are the zero vector
        for word in _WORD.findall(text.lower()):
            vector[zlib.crc32(word.encode()) % self.dimension] += 1
        return np.asarray(vector / np.linalg.norm(vector), np.float32)


class FailingEmbedder(WordEmbedder):
    """Embeds so many calls with documents, then fails as a server does that went away."""

    def __init__(self, calls: int, error: BaseException | None = None) -> None:
        super().__init__()
        self.calls = calls
        self.error = error or EmbedderError("the embedder went away", "start it again")

    def embed_documents(self, texts: Sequence[str]) -> np.ndarray:
        if self.calls == 0:
            raise self.error
        self.calls -= 1
        return super().embed_documents(texts)
