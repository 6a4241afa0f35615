"""Language models. `open_model` opens the one that a setting names.

    ollama:MODEL      a server of Ollama, `ollama_host`
    claude[:MODEL]    the user's own signed-in Claude Code
    anthropic:MODEL   the Messages API, [llm] anthropic_key_variable
    openai:MODEL      any server with OpenAI's chat completions, [llm] openai_url

A model is asked in one call and has no memory and no files; the call of a tool is a wish, which whoever
asks the model may fulfil. The caller decides what a model may see: secrets are taken out before, and
what it says is checked after. Models and addresses come from the user's own settings and environment,
keys from the environment alone; a vault chooses none of them.

A backend is a module with a class that extends `backend.Backend`, and a line in `_BACKENDS`. Attempts,
the day's allowance, the form of answers and what calls took are the same for all: `MeteredModel`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from vault_index.config import Config
from vault_index.errors import SettingsError
from vault_index.llm.anthropic import AnthropicBackend
from vault_index.llm.backend import Backend, Question, Reply, Take, Usage
from vault_index.llm.claude import DEFAULT_MODEL, ClaudeBackend
from vault_index.llm.metered import Allowance, MeteredModel
from vault_index.llm.ollama import OllamaBackend
from vault_index.llm.openai import OpenAIBackend
from vault_index.llm.server import Sleep


class Model(Protocol):
    """Text -> text. All methods raise ModelCallError: away, refused or over the day's allowance."""

    name: str  # in the settings: `ollama:MODEL`
    can_call_tools: bool  # it takes questions with tools; False after the first it refused for them
    usage: Usage  # the cost of this object's calls so far

    def complete(self, system: str, prompt: str) -> str:
        """Return the answer to a prompt, never empty.

        `system` holds instructions only: what a user or a file said belongs into the prompt.
        """

    def complete_json(
        self, system: str, prompt: str, keys: Mapping[str, Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Return the answer as an object with exactly these keys; each value fits its JSON schema.

        `backend.parse_json` says which part of JSON schema counts.
        """

    def converse(self, question: Question, take: Take | None = None) -> Reply:
        """Return the reply, its text or its calls; `take` gets its text in pieces as they come, and
        "" in each second that the model is silent.

        The pieces are the text of the reply. They stay with the caller where an error
        comes in the middle of them; what `take` raises ends the call at once and passes through. Raises
        ModelToolsError where the model takes no tools: it can be asked without.
        """


_BACKENDS: dict[str, Callable[[str, Config, int], Backend]] = {
    "ollama": lambda model, config, limit: OllamaBackend(
        model, config.ollama_host, limit, config.llm
    ),
    "claude": lambda model, config, limit: ClaudeBackend(model, config, os.environ, limit),
    "anthropic": lambda model, config, limit: AnthropicBackend(
        model, os.environ, limit, config.llm
    ),
    "openai": lambda model, config, limit: OpenAIBackend(model, config, os.environ, limit),
}
_DEFAULTS = {"claude": DEFAULT_MODEL}


def open_model(name: str, config: Config, sleep: Sleep = time.sleep) -> Model:
    """Open a model by its name in the settings. Nothing is asked before first use.

    Raises SettingsError for an unknown backend, a missing model, or an unusable address.
    """
    kind, _, model = name.partition(":")
    model = model.strip() or _DEFAULTS.get(kind, "")
    if kind not in _BACKENDS or not model:
        choices = [each if each in _DEFAULTS else f"{each}:MODEL" for each in _BACKENDS]
        raise SettingsError(f"no language model {name!r}", f"choose {' or '.join(choices)}")
    backend = _BACKENDS[kind](model, config, config.llm.timeout_seconds)
    return MeteredModel(backend, Allowance(config), sleep)
