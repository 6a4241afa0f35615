"""What can be asked of a vault, as JSON values in and out: the same in the watcher and without it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, astuple
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vault_index.get import Entry
    from vault_index.stats import Problem
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
    kinds: Sequence[str] = ("lessons",),
    within: str = "",
    project: str = "",
    neighbours: int = 0,
    only: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Find lessons and skills: `hits`, `dropped` as [hit, why], `place`, `text_only`, `embedder`.

    `only` narrows lessons down: see `filters.from_json`.
    `floor` and `skills_floor` are those in force. With `neighbours` each lesson has that many
    passages before and after the one that was found, as [position, title, text].
    """
    from vault_index import catalog, filters, floor
    from vault_index import search as searching

    place = catalog.resolve(vault, within) if within else None
    narrowed = filters.from_json(only or {})
    lessons, skills = searching.Results([]), searching.Results([])
    if "lessons" in kinds:
        lessons = searching.run(
            vault, query, k, categories, min_score, place=place, explain=explain, only=narrowed
        )
    if "skills" in kinds:
        where = Path(project) if project else None
        skills = searching.skills(vault, query, k, min_score, project=where, explain=explain)
    found = [hit.as_json() for hit in lessons.hits]
    for hit, values in zip(lessons.hits, found, strict=True):
        if neighbours:
            near = searching.neighbours(vault, hit, neighbours)
            values["neighbours"] = [list(astuple(one)) for one in near]
    text_only = lessons.text_only or skills.text_only
    return {
        "hits": found + [hit.as_json() for hit in skills.hits],
        "dropped": [[hit.as_json(), why] for hit, why in lessons.dropped + skills.dropped],
        "place": f"{place.title} ({place.path})" if place else "",
        "floor": floor.in_force(vault, text_only=bool(text_only)),
        "skills_floor": floor.for_skills(vault, text_only=bool(text_only)),
        "text_only": text_only,
        "embedder": vault.config.embedder,
    }


def recall(vault: Vault, query: str, project: str = "") -> dict[str, Any]:
    """Give what an agent would be given: `text`, `hits`, `skills`, `floor`, `silent`."""
    from vault_index import recall as recalling

    found = recalling.for_prompt(vault, query, project=Path(project) if project else None)
    return {
        "text": found.text,
        "hits": [hit.as_json() for hit in found.hits],
        "skills": [hit.as_json() for hit in found.skills],
        "floor": found.floor,
        "silent": found.silent,
    }


def without_table(
    vault: Vault, question: Mapping[str, Any], *, names_only: bool = False, prompts: bool = True
) -> tuple[dict[str, Any], list[Problem]] | None:
    """Answer a question from the files alone, with what is wrong with them; None where that cannot be.

    With `names_only` nobody is shown more of a lesson than its id, title and path, without `prompts`
    nobody those that should find it.
    """
    from vault_index import get

    asked, how = question["ask"], question["with"]
    if asked == "show":
        found = get.entry_from_file(vault, how["name"], names_only=names_only, prompts=prompts)
        return None if found is None else ({"entry": _plain(found[0])}, found[1].problems)
    if asked not in ("list", "categories"):
        return None
    names_only = names_only and not how.get("category")
    dates = bool(how.get("since")) or how.get("order") in ("created", "updated")
    listed = get.from_files(vault, names_only=names_only, dates=dates)
    if listed is None:
        return None
    known, now = listed
    give = entries if asked == "list" else categories
    return give(vault, **how, known=known), now.problems


def entries(vault: Vault, category: str | None, since: str = "", **how: Any) -> dict[str, Any]:
    """List the lessons: `entries`. `since` is ISO 8601, the rest as in `get.entries`."""
    from vault_index import get

    moment = datetime.fromisoformat(since) if since else None
    return {"entries": list(map(_plain, get.entries(vault, category, since=moment, **how)))}


def categories(vault: Vault, known: Sequence[Entry] | None = None) -> dict[str, Any]:
    """Count the lessons: `counts` in and below each category, `own` in it alone."""
    from vault_index import get

    counts, own = (get.categories(vault, own=own, known=known) for own in (False, True))
    return {"counts": counts, "own": own}


def classify(vault: Vault) -> dict[str, Any]:
    """Propose categories for lessons without: `proposals`."""
    from vault_index import classify as classifying

    return {"proposals": [asdict(one) for one in classifying.propose(vault)]}


def entry(vault: Vault, name: str) -> dict[str, Any]:
    """Return one lesson, by the beginning of its name, too: `entry`."""
    from vault_index import get

    return {"entry": _plain(get.entry(vault, name, beginnings=True))}


def check(vault: Vault, paths: Sequence[str]) -> dict[str, Any]:
    """Check lesson files against the index: `findings`, `categories`."""
    from vault_index import duplicates

    return duplicates.against_index(vault, paths)


def _hook(vault: Vault, event: dict[str, Any], ms: float, until: float) -> dict[str, Any]:
    from vault_index.entrypoints import hooks

    return {"answer": hooks.respond(vault, event, by="watcher", ms=ms, until=until)}


def _plain(entry: Mapping[str, Any]) -> dict[str, Any]:
    moments = {key: entry[key].isoformat() for key in ("created_at", "updated_at") if entry[key]}
    return {**entry, **moments}


_ASKED: Mapping[str, Callable[..., dict[str, Any]]] = {
    "search": search,
    "recall": recall,
    "list": entries,
    "categories": categories,
    "classify": classify,
    "show": entry,
    "check": check,
    "hook": _hook,
}
