"""A model behind each of two APIs, with a real server: what it is asked, and what it says."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.model_server import ModelServer
from vault_index.config import Config, LlmTable
from vault_index.llm import BACKENDS
from vault_index.llm.backend import ModelQuestion, Tool
from vault_index.llm.metered import Allowance, Model

TEXT = "Erhöhe den Heap auf 4 GB \N{EM DASH} dann baut es. \N{ROCKET} \U0001f9d1\u200d\U0001f4bb"
SEARCH = Tool(
    "search_lessons",
    "Search the lessons of the vault.",
    {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
)
WANTED = {"query": "größerer Heap"}
CALL = ("search_lessons", json.dumps(WANTED, ensure_ascii=False))
PLAIN = ModelQuestion("Be brief.", "What was it?")
QUESTION = ModelQuestion("Be brief.", "What was it?", tools=(SEARCH,))
KINDS = ("anthropic", "openai")
KEY = "sk-made-up-for-this-test"


def model_at(kind: str, url: str, home: Path, pauses: list[float], timeout: float = 20) -> Model:
    """Return the model of a server by its API."""
    config = Config(home=home, llm=LlmTable(openai_url=f"{url}/v1"))
    environ = {"ANTHROPIC_API_KEY": KEY, "OPENAI_API_KEY": KEY, "ANTHROPIC_BASE_URL": url}
    backend = BACKENDS[kind]("opus", config, environ, timeout)
    return Model(backend, Allowance(config), pauses.append)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as serving:
        serving.answer = lambda _: TEXT
        yield serving


@pytest.fixture
def pauses() -> list[float]:
    """The seconds that were waited between attempts: none of them passes."""
    return []


@pytest.fixture
def model(kind: str, server: ModelServer, tmp_path: Path, pauses: list[float]) -> Model:
    return model_at(kind, server.url, tmp_path, pauses)


@pytest.fixture
def used(tmp_path: Path) -> Callable[[], tuple[int, int]]:
    """The calls and tokens that the day's allowance has lost."""

    def used() -> tuple[int, int]:
        day = Allowance(Config(home=tmp_path)).used()
        return day.calls, day.tokens

    return used
