"""Models behind two APIs, each asked by its own backend: what they are asked, and what they say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.model_server import ModelServer
from vault_index.config import Config, LlmTable
from vault_index.llm import BACKENDS
from vault_index.llm.backend import Question, Tool
from vault_index.llm.metered import Allowance, Model

TEXT = "Erhöhe den Heap auf 4 GB \N{EM DASH} dann baut es. \N{ROCKET} \U0001f9d1\u200d\U0001f4bb"
SEARCH = Tool(
    "search_lessons",
    "Search the lessons of the vault.",
    {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
)
WANTED = {"query": "größerer Heap"}
CALL = ("search_lessons", json.dumps(WANTED, ensure_ascii=False))
PLAIN = Question("Be brief.", "What was it?")
QUESTION = Question("Be brief.", "What was it?", tools=(SEARCH,))
KINDS = ("anthropic", "openai")
Server = ModelServer


def model_at(kind: str, server: Server, home: Path, timeout: float = 20) -> Model:
    """Return the model of a server by its API."""
    settings = LlmTable(openai_url=f"{server.url}/v1")
    config = Config(home=home, llm=settings)
    environ = {"ANTHROPIC_API_KEY": "sk-made-up", "ANTHROPIC_BASE_URL": server.url}
    backend = BACKENDS[kind]("opus", config, environ, timeout)
    return Model(backend, Allowance(config), lambda _: None)


def bodies(server: Server) -> list[dict[str, Any]]:
    """Return the requests of conversations, as they came."""
    return [request.body for request in server.requests]
