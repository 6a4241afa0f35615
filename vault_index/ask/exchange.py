"""A question of a conversation and its answer, kept to be sent again with the next question."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from vault_index.llm.door import ASSISTANT, USER, Turn

MAX_CHARS = 8_000  # of a question or an answer that is sent again
_CITED = re.compile(r"[ \t]*\[\d+\]")


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question and its answer; no passage of the vault is in it."""

    question: str
    answer: str


def turns(before: Iterable[Exchange]) -> tuple[Turn, ...]:
    """Return exchanges as a model is sent them: without citations, whose numbers are of their time."""
    return tuple(
        turn
        for each in before
        for turn in (
            Turn(USER, each.question[:MAX_CHARS]),
            Turn(ASSISTANT, _CITED.sub("", each.answer)[:MAX_CHARS] or "-"),
        )
    )
