"""The lessons of the index, listed and looked up by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vault_index import categories, store
from vault_index.errors import VaultError

if TYPE_CHECKING:
    from vault_index.vault import Vault

COLUMNS = (
    *("id", "lesson_id", "path", "title", "categories", "tags", "type", "confidence"),
    *("created_at", "updated_at", "author"),
)


def entries(vault: Vault, category: str | None = None) -> list[dict[str, Any]]:
    """List the lessons, sorted by id: what the index knows of each but its text.

    `category` narrows to those in or below it. Raises IndexStateError without an index.
    """
    where = store.below([categories.normalise(category)]) if category else None
    return _lessons(vault, COLUMNS, where)


def entry(vault: Vault, name: str) -> dict[str, Any]:
    """Give one lesson with its text, by id, by path, or by the end of either.

    Raises VaultError if there is none, or more than one.
    """
    wanted = name.strip().removesuffix(".md").strip("/")
    known = _lessons(vault, COLUMNS)
    exact = [one for one in known if wanted in (one["id"], _stem(one))]
    ends = (f"/{wanted}", f"#{wanted}")
    found = exact or [
        one for one in known if any(f"/{end}".endswith(ends) for end in (one["id"], _stem(one)))
    ]
    if not found:
        raise VaultError(f"no lesson {name!r}", "`lessons list` shows their ids")
    if len(found) > 1:
        some = ", ".join(one["id"] for one in found[:4])
        raise VaultError(f"{len(found)} lessons are called {name!r}: {some}", "give the whole id")
    where = store.only_ids([f"{found[0]['id']}@0"])
    return _lessons(vault, (*COLUMNS, "text", "fires_on", "silent_on"), where)[0]


def _lessons(
    vault: Vault, columns: tuple[str, ...], where: str | None = None
) -> list[dict[str, Any]]:
    rows = vault.open_index().store.rows(columns, where)
    found = [row for row in rows if row["id"].endswith("@0")]  # the passage that is the whole
    for row in found:
        row["id"] = row.pop("lesson_id")
    return sorted(found, key=lambda one: str(one["id"]))


def _stem(entry: dict[str, Any]) -> str:
    return str(entry["path"]).removesuffix(".md")
