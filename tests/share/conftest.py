"""Clones, whose commands index again and again: no floor decides what is told of it."""

from __future__ import annotations

import pytest

from tests.support.warm import FEW_PROMPTS


@pytest.fixture(autouse=True)
def few_prompts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FEW_PROMPTS, "1")
