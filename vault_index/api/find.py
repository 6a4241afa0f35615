"""The question that searches: hits for a text."""

from __future__ import annotations

from dataclasses import astuple
from typing import TYPE_CHECKING, Any

from vault_index.search import floor, query
from vault_index.search.options import Query

if TYPE_CHECKING:
    from vault_index.vault import Vault


def search(vault: Vault, **options: Any) -> dict[str, Any]:
    """Find lessons and skills: `hits`, `dropped` as [hit, why], `place`, `text_only`, `embedder`.

    The options are those of `search.Query`. `floor` and `skills_floor` are those in force. With
    `neighbours` each lesson has that many passages before and after the one that matched, as
    [position, title, text].
    """
    asked = Query.from_json(options)
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
