"""Language models. `open_model` opens the one that a setting names.

    ollama:MODEL      a server of Ollama, `ollama_host`
    claude[:MODEL]    the user's own signed-in Claude Code
    anthropic:MODEL   the Messages API, [llm] anthropic_key_variable
    openai:MODEL      any server with OpenAI's chat completions, [llm] openai_url

A model has no memory, no files and no tools, unless the caller answers its calls. The caller removes
secrets before, and checks the answer after. Models and addresses come from the user's settings and
environment, keys from the environment alone.

A backend is a class that extends `backend.Backend`, named in `BACKENDS`. `metered.Model` adds attempts,
the day's allowance and the form of answers to each.
"""

from __future__ import annotations

import os
import time

from vault_index.config import Config
from vault_index.errors import SettingsError
from vault_index.llm.anthropic import AnthropicBackend
from vault_index.llm.backend import Backend
from vault_index.llm.claude import DEFAULT_MODEL, ClaudeBackend
from vault_index.llm.metered import Allowance, Model
from vault_index.llm.openai import OllamaBackend, OpenAIBackend
from vault_index.llm.server import Sleep

BACKENDS: dict[str, type[Backend]] = {
    backend.kind: backend
    for backend in (OllamaBackend, ClaudeBackend, AnthropicBackend, OpenAIBackend)
}
_DEFAULTS = {ClaudeBackend.kind: DEFAULT_MODEL}


def open_model(name: str, config: Config, sleep: Sleep = time.sleep) -> Model:
    """Open a model by its name in the settings. Nothing is asked before first use.

    Raises SettingsError for an unknown backend, a missing model, or an unusable address.
    """
    kind, _, model = name.partition(":")
    model = model.strip() or _DEFAULTS.get(kind, "")
    if kind not in BACKENDS or not model:
        choices = [each if each in _DEFAULTS else f"{each}:MODEL" for each in BACKENDS]
        raise SettingsError(f"no language model {name!r}", f"choose {' or '.join(choices)}")
    return Model(BACKENDS[kind](model, config, os.environ), Allowance(config), sleep)
