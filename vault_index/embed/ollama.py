"""Vectors from an Ollama server, through the `ollama` package."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from vault_index import model_http
from vault_index.errors import EmbedderError
from vault_index.text.quote import visible_line, without_key

if TYPE_CHECKING:
    import numpy as np
    import ollama

BATCH = 32  # texts a request: one bad text fails its whole batch
TIMEOUT_SECONDS = 60.0  # the client has no default; loading a model takes seconds
MAX_MESSAGE = 200  # characters of what the server says of an error
MAX_CHARS = 6000  # nomic reads 2,048 tokens in Ollama; the server cuts what is longer

# what a model's card asks for; Ollama adds nothing: {model family: (query, document)}
_PREFIXES = {"nomic-embed-text": ("search_query: ", "search_document: ")}


MIN_CHARS = 100  # of the first part of a text that the model refuses
_ANOTHER = "check that OLLAMA_HOST is an Ollama server, and a recent one"
# what servers say of a text, whatever their status: 500 of some is a vector without numbers
_OF_THE_TEXT = re.compile(r"(?i)context (?:length|size)|input length|too (?:long|large)|\bnan\b")


class _RefusedError(EmbedderError):
    """A text among those that were sent is too long for the model, or no text to it."""


class OllamaEmbedder:
    """An embedding model on an Ollama server.

    `host` is what `OLLAMA_HOST` may hold: a name, a port, a URL. Nothing is asked before first use.
    `shortened` are the texts of which it took only the first part, or nothing: their vector is zero.
    """

    def __init__(self, model: str, host: str, timeout: float = TIMEOUT_SECONDS) -> None:
        self.model = model
        self.host = model_http.asked(host)
        self.timeout = timeout
        self.shortened: set[str] = set()
        self.name = f"ollama/{model}"
        self._prefixes = _PREFIXES.get(model.partition(":")[0], ("", ""))

    @cached_property
    def dimension(self) -> int:
        return len(self._ask(["dimension"])[0])

    def embed_documents(self, texts: Sequence[str]) -> np.ndarray:
        return self._batches(self._prefixes[1], texts)

    def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
        vectors = self._batches(self._prefixes[0], texts)
        if not vectors.any(axis=1).all():
            raise EmbedderError(f"{self.name} refuses the text", "ask in other words")
        return vectors

    def knows(self, _text: str) -> bool:
        return True  # whoever chose a model knows its languages

    def _batches(self, prefix: str, texts: Sequence[str]) -> np.ndarray:
        vectors: list[Sequence[float]] = []
        for start in range(0, len(texts), BATCH):
            vectors += self._by_parts(prefix, texts[start : start + BATCH])
        return self._checked(vectors)

    def _by_parts(self, prefix: str, texts: Sequence[str]) -> list[Sequence[float]]:
        """Embed texts; one that the model refuses by its first part, half as long each time."""
        try:
            return self._ask([prefix + text[:MAX_CHARS] for text in texts])
        except _RefusedError:
            middle = len(texts) // 2
            if middle:
                several = (texts[:middle], texts[middle:])
                return [each for some in several for each in self._by_parts(prefix, some)]
            self.shortened.add(texts[0])
            half = texts[0][: min(len(texts[0]), MAX_CHARS) // 2]
            if len(half) < MIN_CHARS:
                return [[0.0] * self.dimension]
            return self._by_parts(prefix, [half])

    def _ask(self, texts: list[str]) -> list[Sequence[float]]:
        vectors = list(self._answer(texts).embeddings)
        if len(vectors) != len(texts) or not all(vectors):
            raise EmbedderError(
                f"Ollama gave {len(vectors)} vectors for {len(texts)} texts",
                "choose an embedding model: ollama pull nomic-embed-text",
            )
        return vectors

    @cached_property
    def _client(self) -> ollama.Client:
        import httpx

        try:
            name = urlsplit(self.host if "//" in self.host else f"//{self.host}").hostname
            import ollama  # makes a client of OLLAMA_HOST

            return ollama.Client(self.host, **model_http.options(name or "localhost", self.timeout))
        except (ValueError, httpx.InvalidURL):
            raise EmbedderError(
                f"OLLAMA_HOST is no address: {without_key(self.host)!r:.80}",
                "set OLLAMA_HOST to a host, a host:port or a URL",
            ) from None

    def _answer(self, texts: list[str]) -> ollama.EmbedResponse:
        client = self._client
        import httpx
        import ollama

        try:
            return client.embed(model=self.model, input=texts)
        except ollama.ResponseError as error:
            status = error.status_code
            message = visible_line(_first_line(error.error or f"status {status}"))[:MAX_MESSAGE]
            problem, hint = f" with {self.model}: {message}", "see the log of `ollama serve`"
            if status in (400, 413, 422) or _OF_THE_TEXT.search(message):
                where = without_key(self.host)
                raise _RefusedError(f"Ollama at {where}{problem}", hint) from None
            if status == 404:
                hint = f"run: ollama pull {self.model}"
            if 300 <= status < 400:
                problem = ": it leads elsewhere, where no text is sent"
                hint = "set OLLAMA_HOST to where it leads, if that is yours"
        except model_http.TooLargeError as error:
            problem, hint = f": {error}", _ANOTHER
        except httpx.TimeoutException:
            problem = f" did not answer in {self.timeout:g} s"
            hint = "see whether it is overloaded"
        except (OSError, httpx.HTTPError) as error:
            problem = f" cannot be reached: {_first_line(error)}"
            hint = "start it with `ollama serve`, set OLLAMA_HOST, or use the built-in embedder"
        except (ValueError, TypeError, AttributeError) as error:  # not what the API promises
            problem, hint = f" answered oddly: {_first_line(error)}", _ANOTHER
        raise EmbedderError(f"Ollama at {without_key(self.host)}{problem}", hint)

    def _checked(self, vectors: list[Sequence[float]]) -> np.ndarray:
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


def _first_line(error: Any) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
