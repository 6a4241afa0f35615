"""Embedders: text to unit vectors. `minilm` is built in, with other languages by an extra; `ollama` asks
a server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np

    from vault_index.config import Config


class Embedder(Protocol):
    """Text -> vectors. Two embedders of the same name return the same vectors."""

    @property
    def name(self) -> str:
        """The name that an index is marked with; vectors of another name are never compared."""

    @property
    def dimension(self) -> int:
        """The length of a vector."""

    def embed_documents(self, texts: Sequence[str]) -> np.ndarray:
        """Return a unit vector for each text, float32[len(texts), dimension]. Raises EmbedderError."""

    def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
        """Return a unit vector for each query, float32[len(texts), dimension]. Raises EmbedderError."""

    def knows(self, text: str) -> bool:
        """Whether it was trained on the language of a query, so that its vector means something."""


def open_embedder(config: Config) -> Embedder | None:
    """Open the embedder of the user's choice; None without one: full text has to do.

    The built-in one is None until its model is on this machine (`models.fetch`). Raises
    EmbedderError if an Ollama server was chosen and does not answer, or an extra and is not installed.
    """
    if config.embedder == "ollama":
        from vault_index.embed.ollama import OllamaEmbedder

        return OllamaEmbedder(config.ollama_model, config.ollama_host)
    if config.is_built_in:
        from vault_index.embed import download
        from vault_index.embed.minilm import MiniLM

        if download.is_ready(config.home):
            model = MiniLM(download.folder(config.home))
            if config.embedder == "minilm":
                return model
            from vault_index.embed.languages import TwoModels

            return TwoModels(model)
    return None
