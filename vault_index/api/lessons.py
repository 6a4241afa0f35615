"""Questions about what a vault holds: its lessons, one lesson, its categories. They load little."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from vault_index.search import entries

if TYPE_CHECKING:
    from vault_index.index.stats import Problem
    from vault_index.search.entries import Entry
    from vault_index.vault import Vault


def list_(
    vault: Vault, category: str | None = None, since: str = "", **options: Any
) -> dict[str, Any]:
    """List the lessons: `entries`. `since` is ISO 8601, the other options as in `search.entries`."""
    moment = datetime.fromisoformat(since) if since else None
    listed = entries.entries(vault, category, since=moment, **options)
    return {"entries": list(map(as_json, listed))}


def show(vault: Vault, name: str) -> dict[str, Any]:
    """Return one lesson with its text, also by the beginning of its name: `entry`."""
    return {"entry": as_json(entries.entry(vault, name, beginnings=True))}


def categories(vault: Vault, known: Sequence[Entry] | None = None) -> dict[str, Any]:
    """Count the lessons: `counts` in and below each category, `own` in it alone."""
    counts, own = (entries.categories(vault, own=own, known=known) for own in (False, True))
    return {"counts": counts, "own": own}


def filed(vault: Vault, ids: Sequence[str]) -> dict[str, Any]:
    """Return the `categories` of the lessons that have exactly these ids, by id."""
    return {"categories": entries.filed(vault, ids)}


def from_files(
    vault: Vault, question: Mapping[str, Any], *, names_only: bool = False, prompts: bool = True
) -> tuple[dict[str, Any], list[Problem]] | None:
    """Answer a question from the files alone, with the problems in them; None where that fails.

    `names_only` is for callers that show no more of a lesson than its id, title and path; without
    `prompts` a lesson may lack those that should find it.
    """
    name, values = question["ask"], question["with"]
    if name == "show":
        lesson = entries.entry_from_file(
            vault, values["name"], names_only=names_only, prompts=prompts
        )
        return None if lesson is None else ({"entry": as_json(lesson[0])}, lesson[1].problems)
    names_only = names_only and not values.get("category")
    dates = bool(values.get("since")) or values.get("order") in ("created", "updated")
    listed = entries.from_files(vault, names_only=names_only, dates=dates)
    if listed is None:
        return None
    known, now = listed
    if name == "list":
        return list_(vault, **values, known=known), now.problems
    return categories(vault, known=known), now.problems


def as_json(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry as JSON values; moments are ISO 8601."""
    moments = {key: entry[key].isoformat() for key in ("created_at", "updated_at") if entry[key]}
    return {**entry, **moments}
