"""Prompts and failures that no lesson answers: acknowledgements, chit-chat, other people's code.

Words that many of them have say little. Floors are measured with them.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from vault_index.text import failure
from vault_index.text.failure import Failure


def prompts() -> list[str]:
    """List the prompts, in English."""
    lines = _read("prompts.txt").splitlines()
    return [line for line in lines if line and not line.startswith("# ")]


@lru_cache(maxsize=1)
def failures() -> tuple[Failure, ...]:
    """Return the failed commands with their output."""
    blocks = _read("failures.txt").split("\n\n")
    parts = (block[2:].partition("\n") for block in blocks if block.startswith("$ "))
    return tuple(failure.read(command, output) for command, _, output in parts)


def _read(file: str) -> str:
    return (Path(__file__).parent / file).read_text("utf-8")
