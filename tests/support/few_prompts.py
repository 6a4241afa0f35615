"""Fit floors to a tenth of the prompts that no lesson answers.

Those of all take 0.2 seconds of a processor after each new index, which is most of what many tests need.
A test whose result a fitted floor decides has the marker `floor`, or asks the model: it has all of them.
"""

from __future__ import annotations

import os

from vault_index.search import floor

NAME = "TESTS_FEW_PROMPTS"  # in the environment, for the commands that a test runs
_ALL = floor.foreign_prompts


def fit(few: bool) -> None:
    """Let this process, and the forks that run commands for it, fit floors to few prompts or to all."""
    os.environ[NAME] = "1" if few else ""
    floor.foreign_prompts = _tenth if few else _ALL


def _tenth() -> list[str]:
    return _ALL()[::10]
