"""Vectors from an Ollama server, through the `ollama` package."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from vault_index.errors import EmbedderError
from vault_index.model_http import OllamaClient

if TYPE_CHECKING:
    import numpy as np

BATCH = 32  # texts a request: one bad text fails its whole batch
TIMEOUT_SECONDS = 60.0  # the client's default is none; loading a model takes seconds
MAX_CHARS = 6000  # nomic reads 2,048 tokens in Ollama; the server cuts what is longer

# what a model's card asks for; Ollama adds nothing: {model family: (query, document)}
_PREFIXES = {"nomic-embed-text": ("search_query: ", "search_document: ")}


class OllamaEmbedder:
    """An embedding model on an Ollama server.

    `host` is what `OLLAMA_HOST` may hold: a name, a port, a URL. Nothing is asked before first use.
    """

    def __init__(self, model: str, host: str, timeout: float = TIMEOUT_SECONDS) -> None:
        self.model = model
        self._server = OllamaClient(host, timeout)
        self.name = f"ollama/{model}"
        self._prefixes = _PREFIXES.get(model.partition(":")[0], ("", ""))

    @cached_property
    def dimension(self) -> int:
        return len(self._ask(["dimension"])[0])

    def embed_documents(self, texts: Sequence[str]) -> np.ndarray:
        vectors: list[Sequence[float]] = []
        for start in range(0, len(texts), BATCH):
            batch = texts[start : start + BATCH]
            vectors += self._ask([self._prefixes[1] + text[:MAX_CHARS] for text in batch])
        return self._checked(vectors)

    def embed_query(self, text: str) -> np.ndarray:
        vector: np.ndarray = self._checked(self._ask([self._prefixes[0] + text[:MAX_CHARS]]))[0]
        return vector

    def _ask(self, texts: list[str]) -> list[Sequence[float]]:
        response = self._server.call(
            lambda client: client.embed(model=self.model, input=texts),
            self.model,
            "use the built-in embedder",
            lambda _, message, hint: EmbedderError(message, hint),
        )
        vectors = list(response.embeddings)
        if len(vectors) != len(texts) or not all(vectors):
            raise EmbedderError(
                f"Ollama gave {len(vectors)} vectors for {len(texts)} texts",
                "choose an embedding model: ollama pull nomic-embed-text",
            )
        return vectors

    def _checked(self, vectors: list[Sequence[float]]) -> np.ndarray:
        """Make an array of unit vectors of the one right length."""
        import numpy as np

        if any(len(vector) != self.dimension for vector in vectors):
            raise EmbedderError(
                f"{self.name} changed its dimension from {self.dimension} to "
                f"{sorted({len(vector) for vector in vectors})}",
                "run `lessons index --rebuild`",
            )
        array = np.array(vectors, np.float32).reshape(len(vectors), self.dimension)
        if not np.isfinite(array).all():
            raise EmbedderError(
                f"Ollama gave a vector that is not made of numbers, with {self.model}",
                f"run: ollama pull {self.model}, or choose another model",
            )
        array /= np.maximum(np.linalg.norm(array, axis=1, keepdims=True), 1e-12)
        return array
