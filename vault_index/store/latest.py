"""The latest answer of a reader's table, for who asks the same twice: a page and its hook's view."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from vault_index.store.table import Table

    Pair = tuple[np.ndarray, np.ndarray]
    Ask = Callable[[Table, str, int, str | None], Pair]


def kept(ask: Ask) -> Ask:
    """Keep the latest answer of a table that stays at its version."""

    @wraps(ask)
    def answer(table: Table, text: str, limit: int, where: str | None) -> Pair:
        asked = text, limit, where
        last = table.latest  # read once: other threads may replace it
        if last is None or last[0] != asked or not table.pinned:
            table.latest = last = asked, ask(table, text, limit, where)
        return last[1]

    return answer
