"""The questions that search: hits for a text, with what people or only programs need of them."""

from __future__ import annotations

from dataclasses import astuple, replace
from typing import TYPE_CHECKING, Any

from vault_index.search import floor, query
from vault_index.search.options import Query

if TYPE_CHECKING:
    from vault_index.search.query import Results
    from vault_index.vault import Vault


def search(vault: Vault, **options: Any) -> dict[str, Any]:
    """Find lessons and skills: `hits`, `dropped` as [hit, why], `place`, `text_only`, `embedder`.

    The options are those of `search.Query`. `floor` and `skills_floor` are those in force. With
    `neighbours` each lesson has that many passages before and after the one that matched, as
    [position, title, text].
    """
    asked = replace(Query.from_json(options), weighted=True, phrases=True)
    results = query.every_kind(vault, asked)
    hits = [hit.as_json() for hit in results.hits]
    for hit, values in zip(results.hits, hits, strict=True):
        if asked.neighbours and hit.kind == "lessons":
            near = query.neighbours(vault, hit, asked.neighbours)
            values["neighbours"] = [list(astuple(passage)) for passage in near]
    place, text_only = results.place, bool(results.text_only)
    return {
        "hits": hits,
        "dropped": [[hit.as_json(), why] for hit, why in results.dropped],
        "place": f"{place.title} ({place.path})" if place else "",
        "floor": floor.in_force(vault, text_only=text_only),
        "skills_floor": floor.for_skills(vault, text_only=text_only),
        "text_only": results.text_only,
        "embedder": vault.config.embedder,
    }


def for_program(vault: Vault, **options: Any) -> dict[str, Any]:
    """Find lessons and skills for a program: `hits`, `text_only`, and the `model` of the vectors or "".

    The options are those of `search.Query`.
    """
    results = query.every_kind(
        vault, replace(Query.from_json(options), weighted=True, phrases=True)
    )
    return {"hits": [hit.as_json() for hit in results.hits], **_searched_with(vault, results)}


def health(vault: Vault) -> dict[str, Any]:
    """Search once, and count: rows of the `tables` by name, and `lessons`. Raises as a search does."""
    results = query.every_kind(vault, Query("is anybody there", 1))
    opened = vault.open_index()
    tables = {
        table.schema.table: table.count() if table.exists() else 0
        for table in (opened.store, opened.documents, opened.skills)
    }
    counts = {"tables": tables, "lessons": opened.lessons, "embedder": vault.config.embedder}
    return {**counts, **_searched_with(vault, results)}


def _searched_with(vault: Vault, results: Results) -> dict[str, str]:
    embedder = None if results.text_only else vault.embedder
    return {"text_only": results.text_only, "model": embedder.name if embedder else ""}
