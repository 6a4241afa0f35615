"""Language models. `open_model` opens the one that a setting names: `ollama:MODEL`.

A model is asked in one call and has no tools, no memory and no files. Whoever asks it decides what it
may see: secrets are taken out before, and what it says is checked after.

A door is a module with a class that satisfies `Model`, and a line in `_DOORS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from vault_index.config import Config
from vault_index.errors import SettingsError
from vault_index.llm.ollama import OllamaModel


class Model(Protocol):
    """Text -> text. Both methods raise ModelCallError, with its leaves for *away* and *refused*."""

    @property
    def name(self) -> str:
        """The name in the settings: `ollama:MODEL`."""

    def complete(self, system: str, prompt: str) -> str:
        """Return the answer to a prompt, never empty."""

    def complete_json(
        self, system: str, prompt: str, keys: Mapping[str, Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Return the answer as an object with exactly these keys; each value fits its JSON schema.

        `answer.parse` says which part of JSON schema counts.
        """


_DOORS: dict[str, Callable[[str, Config], Model]] = {
    "ollama": lambda model, config: OllamaModel(model, config.ollama_host),
}


def open_model(name: str, config: Config) -> Model:
    """Open a model by its name in the settings. Nothing is asked before first use.

    Raises SettingsError if there is no such door, or no model is named.
    """
    door, _, model = name.partition(":")
    if door not in _DOORS or not model.strip():
        choices = " or ".join(f"{choice}:MODEL" for choice in _DOORS)
        raise SettingsError(f"no language model {name!r}", f"choose {choices}")
    return _DOORS[door](model.strip(), config)
