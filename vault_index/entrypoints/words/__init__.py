"""Each subject is said once here, for the command line, MCP, HTTP and the pages: values in, words out.

Nothing here prints, escapes or reads a file: a door makes the words safe for its reader.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def count(number: int, noun: str) -> str:
    """Return a number with its noun: `1 file`, `2 files`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def sentence(said: str) -> str:
    """Return words as a sentence: `nothing matches` is `Nothing matches.`"""
    return f"{said[:1].upper()}{said[1:]}."


def spent(usage: Mapping[str, Any], digits: int = 0) -> str:
    """Return what a model took: tokens, seconds with these digits, and dollars where they are known."""
    tokens = usage["input_tokens"] + usage["output_tokens"]
    cost = "" if usage["cost"] is None else f", {usage['cost']:.{digits + 2}f} dollars"
    return f"{tokens:,} tokens, {usage['seconds']:.{digits}f} s{cost}"
