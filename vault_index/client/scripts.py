"""The two steps of a script: `vault_index.search` and `vault_index.add`.

vault = vault_index.open_vault("~/code/team")
for hit in vault_index.search(vault, "deploy to staging hangs", k=3):
    print(hit.percent, hit.title, hit.path)
vault_index.add(vault, "Set VPN=1 in the job.", title="Staging deploys need the VPN")
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from vault_index.client import here, silent
from vault_index.edit.add import write
from vault_index.search import query
from vault_index.search.hit import Hit
from vault_index.search.query import LESSONS
from vault_index.vault import Vault


def search(
    vault: Vault,
    text: str,
    k: int = 5,
    *,
    categories: Sequence[str] = (),
    kinds: Sequence[str] = (LESSONS,),
    within: str = "",
) -> list[Hit]:
    """Return up to `k` hits for a text, best first, from an index that is brought up to date first.

    `categories`, `kinds` and `within` narrow as those of `Query`. Raises VaultError.
    """
    here.up_to_date_or_stale(vault, silent, silent)
    return query.find(vault, text, k, categories, kinds=kinds, within=within)


def add(
    vault: Vault,
    text: str,
    *,
    title: str = "",
    categories: Sequence[str] = (),
    tags: Sequence[str] = (),
    type: str = "",
    applies_to: Sequence[str] = (),
) -> Path:
    """Write a lesson and return its path. The next search finds it.

    `text` is markdown with or without frontmatter; the other values are set in it. Raises LessonError,
    WriteError, and VaultError for what `lessons check` calls an error, or a file that is there.
    """
    return write(
        vault, text.encode(), title=title, categories=categories, type=type, tags=list(tags),
        applies_to=list(applies_to),
    )  # fmt: skip
