"""What can be asked of a vault, as JSON values in and out: the same in the watcher and without it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vault_index.vault import Vault


def answer(vault: Vault, question: Mapping[str, Any]) -> dict[str, Any]:
    """Answer a question `{"ask": name, "with": {...}}`. Raises VaultError, and KeyError for others."""
    return _ASKED[str(question["ask"])](vault, **question["with"])


def search(
    vault: Vault,
    query: str,
    k: int,
    categories: Sequence[str] = (),
    min_score: float | None = None,
    explain: bool = False,
) -> dict[str, Any]:
    """Find lessons: `hits`, `dropped` as [hit, why], `floor`, `text_only`, `embedder`."""
    from vault_index import floor
    from vault_index import search as searching

    found = searching.run(vault, query, k, categories, min_score, explain=explain)
    return {
        "hits": [hit.as_json() for hit in found.hits],
        "dropped": [[hit.as_json(), why] for hit, why in found.dropped],
        "floor": floor.in_force(vault, text_only=bool(found.text_only)),
        "text_only": found.text_only,
        "embedder": vault.config.embedder,
    }


def recall(vault: Vault, query: str) -> dict[str, Any]:
    """Give what an agent would be given: `text`, `hits`, `floor`, `silent`."""
    from vault_index import recall as recalling

    found = recalling.for_prompt(vault, query)
    hits = [hit.as_json() for hit in found.hits]
    return {"text": found.text, "hits": hits, "floor": found.floor, "silent": found.silent}


def entries(vault: Vault, category: str | None) -> dict[str, Any]:
    """List the lessons: `entries`."""
    from vault_index import get

    return {"entries": list(map(_plain, get.entries(vault, category)))}


def entry(vault: Vault, name: str) -> dict[str, Any]:
    """Give one lesson: `entry`."""
    from vault_index import get

    return {"entry": _plain(get.entry(vault, name))}


def check(vault: Vault, paths: Sequence[str]) -> dict[str, Any]:
    """Check lesson files against the index: `findings`, `categories`."""
    from vault_index import check as checking

    return checking.against_index(vault, paths)


def _hook(vault: Vault, event: dict[str, Any], ms: float) -> dict[str, Any]:
    from vault_index.entrypoints import hooks

    return {"answer": hooks.respond(vault, event, by="watcher", ms=ms)}


def _plain(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: value.isoformat() if isinstance(value, datetime) else value
        for key, value in entry.items()
    }


_ASKED: Mapping[str, Callable[..., dict[str, Any]]] = {
    "search": search,
    "recall": recall,
    "list": entries,
    "show": entry,
    "check": check,
    "hook": _hook,
}
