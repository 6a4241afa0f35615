"""Fit floors to a tenth of the prompts and failures that no lesson answers, and to twenty titles.

All of them take seconds of a processor after each new index, which is most of what many tests need.
A test whose result a fitted floor decides has the marker `floor`: it has all of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from vault_index.search import evidence, failures, floor
from vault_index.text.failure import Failure

NAME = "TESTS_FEW_PROMPTS"  # in the environment, for the commands that a test runs
_PROMPTS, _FAILURES = floor.foreign_prompts, failures.foreign
_TITLES = floor.MAX_TITLES, failures.MAX_TITLES


def fit(few: bool) -> None:
    """Let this process, and the forks that run commands for it, fit floors to few prompts or to all."""
    os.environ[NAME] = "1" if few else ""
    floor.foreign_prompts = _few_prompts if few else _PROMPTS
    failures.foreign = _few_failures if few else _FAILURES
    floor.MAX_TITLES, failures.MAX_TITLES = (evidence.SMALL, evidence.SMALL) if few else _TITLES


@contextmanager
def all_of_them() -> Iterator[None]:
    """Fit floors to all prompts, for what tests share."""
    few = bool(os.environ.get(NAME))
    fit(False)
    try:
        yield
    finally:
        fit(few)


def _few_prompts(file: str = "foreign_prompts.txt") -> list[str]:
    return _PROMPTS(file)[::10]


@lru_cache(maxsize=1)
def _few_failures() -> tuple[Failure, ...]:
    return _FAILURES()[::10]
