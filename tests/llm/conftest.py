"""A model behind each of two APIs, with a real server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.backends import (
    KINDS,
    TEXT,
    Server,
    model_at,
)
from tests.support.model_server import ModelServer
from vault_index.config import Config
from vault_index.llm.metered import Allowance, Model


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def server(kind: str) -> Iterator[Server]:
    with ModelServer() as serving:
        serving.answer = lambda _: TEXT
        yield serving


@pytest.fixture
def model(kind: str, server: Server, tmp_path: Path) -> Model:
    return model_at(kind, server, tmp_path)


@pytest.fixture
def used(tmp_path: Path) -> Callable[[], tuple[int, int]]:
    """The calls and tokens that the day's allowance has lost."""

    def used() -> tuple[int, int]:
        day = Allowance(Config(home=tmp_path)).used()
        return day.calls, day.tokens

    return used
