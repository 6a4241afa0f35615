"""The cost of what a model took for learning: tokens times the price that the user set.

There is no table of prices. A program that says what a call took, such as Claude Code, is believed; a
model without a key has no price.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from vault_index.features import LearnTable
from vault_index.llm.backend import Usage

if TYPE_CHECKING:
    from vault_index.llm.metered import Model

MILLION = 1_000_000  # tokens that a price is for
INPUT, OUTPUT = "input_price", "output_price"


def of(model: Model | None, settings: LearnTable) -> Usage:
    """Return the usage of a model, with the cost in dollars where it is known."""
    if model is None:
        return Usage()
    usage = model.usage
    sent, written = settings.input_price, settings.output_price
    if usage.cost is not None or not model.has_key or sent is None or written is None:
        return usage
    dollars = usage.input_tokens * sent + usage.output_tokens * written
    return replace(usage, cost=dollars / MILLION)


def missing(model: Model | None, settings: LearnTable) -> str:
    """Return the setting to make where calls were paid for and nobody knows their cost; "" for none."""
    if model is None or not (model.has_key and model.usage.calls) or model.usage.cost is not None:
        return ""
    unset = [f"learn.{name}" for name in (INPUT, OUTPUT) if getattr(settings, name) is None]
    return f"set {' and '.join(unset)}" if unset else ""
