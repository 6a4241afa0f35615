"""Vectors from an Ollama server, through the `ollama` package."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from vault_index.errors import EmbedderError

if TYPE_CHECKING:
    import numpy as np
    import ollama

BATCH = 32  # texts a request: one bad text fails its whole batch
TIMEOUT_SECONDS = 60.0  # the client's default is none; loading a model takes seconds
MAX_CHARS = 6000  # nomic reads 2,048 tokens in Ollama; the server cuts what is longer

# what a model's card asks for; Ollama adds nothing: {model family: (query, document)}
_PREFIXES = {"nomic-embed-text": ("search_query: ", "search_document: ")}

_T = TypeVar("_T")


class OllamaEmbedder:
    """An embedding model on an Ollama server.

    `host` is what `OLLAMA_HOST` may hold: a name, a port, a URL. Nothing is asked before first use.
    """

    def __init__(self, model: str, host: str, timeout: float = TIMEOUT_SECONDS) -> None:
        self.model = model
        # what servers listen on is not an address to ask; 10.0.0.0 is one
        self.host = re.sub(r"(?<![\w.])0\.0\.0\.0(?![\w.])", "127.0.0.1", host)
        self.timeout = timeout
        self.name = f"ollama/{model}"
        self._prefixes = _PREFIXES.get(model.partition(":")[0], ("", ""))

    @cached_property
    def dimension(self) -> int:
        """The length of a vector, as the server makes them."""
        return len(self._ask(["dimension"])[0])

    def embed_documents(self, texts: Sequence[str]) -> np.ndarray:
        """Return unit vectors float32[len(texts), dimension]. Raises EmbedderError."""
        vectors: list[Sequence[float]] = []
        for start in range(0, len(texts), BATCH):
            batch = texts[start : start + BATCH]
            vectors += self._ask([self._prefixes[1] + text[:MAX_CHARS] for text in batch])
        return self._checked(vectors)

    def embed_query(self, text: str) -> np.ndarray:
        """Return the unit vector of a query, float32[dimension]. Raises EmbedderError."""
        vector: np.ndarray = self._checked(self._ask([self._prefixes[0] + text[:MAX_CHARS]]))[0]
        return vector

    @cached_property
    def _client(self) -> ollama.Client:
        import ollama

        return ollama.Client(host=self.host, timeout=self.timeout)

    def _ask(self, texts: list[str]) -> list[Sequence[float]]:
        response = self._call(lambda: self._client.embed(model=self.model, input=texts))
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

    def _call(self, ask: Callable[[], _T]) -> _T:
        """Ask the server; every way it can fail becomes an EmbedderError that says what to do."""
        import httpx
        import ollama

        try:
            return ask()
        except ollama.ResponseError as error:
            missing = error.status_code == 404
            problem = _first_line(error.error or f"status {error.status_code}")
            raise EmbedderError(
                f"Ollama at {self.host}: {problem}",
                f"run: ollama pull {self.model}" if missing else "see the log of `ollama serve`",
            ) from None
        except httpx.TimeoutException:
            raise EmbedderError(
                f"Ollama at {self.host} did not answer in {self.timeout:g} s",
                "see whether it is overloaded",
            ) from None
        except (ConnectionError, httpx.HTTPError) as error:
            raise EmbedderError(
                f"Ollama at {self.host} cannot be reached: {_first_line(error)}",
                "start it with `ollama serve`, set OLLAMA_HOST, or use the built-in embedder",
            ) from None
        except httpx.InvalidURL as error:
            raise EmbedderError(
                f"Ollama cannot be asked at {self.host!r}: {_first_line(error)}",
                "set OLLAMA_HOST to a host, a host:port or a URL",
            ) from None
        except (ValueError, TypeError, AttributeError) as error:  # not what the API promises
            raise EmbedderError(
                f"Ollama at {self.host} answered oddly: {_first_line(error)}",
                "check that OLLAMA_HOST is an Ollama server, and a recent one",
            ) from None


def _first_line(error: Any) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
