"""Each subject is said once here, for the command line, MCP, HTTP and the pages: values in, words out.

Nothing here prints or escapes: a door makes the words safe for its reader.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vault_index.llm.backend import Usage


def excerpt(text: str, room: int) -> str:
    """Return a text in one line of at most `room` characters."""
    text = " ".join(text[: 40 * room].split())
    return text[: room - 1] + "…" if len(text) > room else text


def sentence(text: str) -> str:
    """Return words as a sentence: `nothing matches` is `Nothing matches.`"""
    return f"{text[:1].upper()}{text[1:]}."


def spent(usage: Usage, digits: int = 0, no_cost: str = "") -> str:
    """Return a model's usage: tokens, seconds with these digits, and dollars where they are known.

    `no_cost` is what to do where nobody knows them.
    """
    tokens = usage.input_tokens + usage.output_tokens
    cost = f", its cost is not known: {no_cost}" if no_cost else ""
    if usage.cost is not None:
        least = 10.0 ** -(digits + 2)
        is_less = 0 < usage.cost < least
        cost = f", {'under ' if is_less else ''}{max(usage.cost, least * is_less):.{digits + 2}f} dollars"
    return f"{tokens:,} tokens, {usage.seconds:.{digits}f} s{cost}"


LEARN, TEND, SKILL = "learn", "tend", "skill"  # what an agent does with its own model
_PROMPTS = Path(__file__).parents[2] / "prompts"


def instructions(name: str, what: str) -> str:
    """Return the instructions of an agent: LEARN, TEND or SKILL, about its user's words."""
    text = (_PROMPTS / f"agent_{name}.md").read_text("utf-8")
    worth = (_PROMPTS / "learn_worth.md").read_text("utf-8").strip()
    return text.replace("{worth}", worth).replace("{what}", what)
