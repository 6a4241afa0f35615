"""Check lessons at the moment somebody gets them, where the index is not that far: see `index.checking`.

A lesson that may be an order to agents reaches none of them unchecked.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from vault_index.index import diff
from vault_index.retrieval.hit import Hit, WholeEntry
from vault_index.store.filters import UNCHECKED

if TYPE_CHECKING:
    from vault_index.vault import Vault

Found = TypeVar("Found", Hit, WholeEntry)


def checked(vault: Vault, lessons: Iterable[Found], at_most: int | None = None) -> list[Found]:
    """Return lessons with the reason to leave each out; check the first `at_most` that were not.

    One whose file is no longer as it was indexed stays `UNCHECKED`: the next pass takes it in.
    """
    found = list(lessons)
    due = [index for index, each in enumerate(found) if each.withheld == UNCHECKED][:at_most]
    if not due:
        return found
    with diff.withholding(vault) as withheld:
        for index in due:
            path, hashed = found[index].path.partition("/")[2], found[index].file_hash
            why = diff.withheld_as_indexed(vault, withheld, path, hashed)
            if why is not None:
                found[index] = replace(found[index], withheld=why.why)
    return found


def only_clean(vault: Vault, hits: Iterable[Hit]) -> list[Hit]:
    """Return the hits that an agent may get, each checked."""
    return [hit for hit in checked(vault, hits) if not hit.withheld]
