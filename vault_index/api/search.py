"""The questions that search: hits for a text, with what people or only programs need of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, astuple, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vault_index import status
from vault_index.api.question import Caller, command, question
from vault_index.index import classifier
from vault_index.lesson.file import hash_of
from vault_index.recall import failed, respond, select
from vault_index.search import documents, entries, failures, floor, query, taught
from vault_index.search.query import HITS, Query, every_kind, neighbours
from vault_index.store import filters
from vault_index.text import failure
from vault_index.text.failure import Failure

if TYPE_CHECKING:
    from vault_index.search.query import Results
    from vault_index.vault import Vault


@question
def find(vault: Vault, query: Query) -> dict[str, Any]:
    """Find lessons and skills: `hits`, `dropped` as [hit, why], `place`, `text_only`, `embedder`.

    `floor` and `skills_floor` are those in force. With
    `neighbours` each lesson has that many passages before and after the one that matched, as
    [position, title, text].
    """
    return _found(vault, query)


def _asked(vault: Vault, query: Query) -> Query:
    """Return what to search for; a `k` of 0 is the number in the settings."""
    k = query.k or vault.config.search.hits or HITS
    return replace(query, k=k, weighted=True, phrases=True)


def _found(vault: Vault, query: Query) -> dict[str, Any]:
    asked = _asked(vault, query)
    results = every_kind(vault, asked)
    hits = [hit.as_json() for hit in results.hits]
    for hit, values in zip(results.hits, hits, strict=True):
        if asked.neighbours and hit.kind == "lessons":
            near = neighbours(vault, hit, asked.neighbours)
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


@question
def for_program(vault: Vault, query: Query) -> dict[str, Any]:
    """Find lessons and skills for a program: `hits`, `text_only`, the `model` of the vectors or ""."""
    if query.within:  # what is withheld is neither searched nor named
        query = replace(query, within=documents.resolve(vault, query.within, for_agent=True).path)
    results = every_kind(vault, _asked(vault, query))
    if not results.hits and "lessons" in query.kinds:
        entries.refuse_unknown(vault, query.categories)
    return {"hits": [hit.as_json() for hit in results.hits], **_searched_with(vault, results)}


@question
def health(vault: Vault) -> dict[str, Any]:
    """Search once, and count: rows of the `tables` by name, and `lessons`. Raises as a search does.

    `degraded_since` is since when words alone are searched, as `text_only` says; "" if they are not.
    """
    vault.last_query = (
        None  # else the vector of the last time would answer for a model that is away
    )
    results = every_kind(vault, Query("is anybody there", 1))
    opened = vault.open_index()
    tables = {
        table.schema.table: table.count() if table.exists() else 0
        for table in (opened.store, opened.documents, opened.skills)
    }
    counts = {"tables": tables, "lessons": opened.lessons, "embedder": vault.config.embedder}
    is_degraded = bool(results.text_only) and vault.config.embedder != "none"
    since = status.degraded(vault, is_now=is_degraded)
    return {**counts, **_searched_with(vault, results), "degraded_since": since}


def _searched_with(vault: Vault, results: Results) -> dict[str, str]:
    embedder = None if results.text_only else vault.embedder
    return {"text_only": results.text_only, "model": embedder.name if embedder else ""}


# Lessons beside each other: near-duplicates, and categories by likeness.


@question
def compare(vault: Vault, paths: Sequence[str]) -> taught.Comparison:
    """Compare lesson files with the index.

    `paths` are relative to the vault's folder. The findings are near-duplicates and prompts of a
    lesson's own that do not find it, or do and should not.
    """
    return taught.against_index(vault, paths)


@question
def classify(vault: Vault) -> dict[str, Any]:
    """Propose categories for the lessons without any: `proposals`, which `accept` takes."""
    return {"proposals": [asdict(proposal) for proposal in classifier.propose(vault)]}


# What an agent gets: for a prompt, and for an event of its hooks.


@question
def recall(vault: Vault, query: str, project: str = "") -> dict[str, Any]:
    """Return what an agent would get for a prompt: `text`, `hits`, `skills`, `floor`, `silent`, `near`.

    `text` is "" for silence; `silent` then says why, and `near` is the nearest lesson, if any.
    `project` is the folder the agent is in.
    """
    return _recalled(vault, query, project)


def _recalled(vault: Vault, query: str, project: str = "") -> dict[str, Any]:
    return _injected(select.for_prompt(vault, query, project=Path(project) if project else None))


def _injected(injection: select.Injection) -> dict[str, Any]:
    return {
        "text": injection.text,
        "hits": [hit.as_json() for hit in injection.hits],
        "skills": [hit.as_json() for hit in injection.skills],
        "floor": injection.floor,
        "silent": injection.silent,
        "near": injection.near.as_json() if injection.near and not injection.text else None,
    }


@question
def taught_lessons(vault: Vault) -> dict[str, Any]:
    """Return the `lessons` that agents may get, by id: `title`, `digest`, and `prompts` that fire it."""
    where = filters.all_of(filters.WHOLE, filters.FOR_AGENTS)
    columns = ("lesson_id", "title", "text", "fires_on", "silent_on")
    lessons = {}
    for row in vault.open_index().store.rows(columns, where):
        fires, silent = list(row["fires_on"] or ()), list(row["silent_on"] or ())
        digest = hash_of(row["title"], row["text"], *fires, "", *silent)
        about = {"title": row["title"], "digest": digest, "prompts": fires}
        lessons[str(row["lesson_id"])] = about
    return {"lessons": lessons}


@question
def fired(vault: Vault, prompts: Sequence[str]) -> dict[str, Any]:
    """Return the ids of the lessons that an agent would get for each prompt: `fired`, by prompt.

    `text_only` says why words alone were searched, "" if they were not.
    """
    found = {
        prompt: [hit.lesson_id for hit in select.for_prompt(vault, prompt).hits]
        for prompt in prompts
    }
    text_only = query.embedder_for(vault, vault.open_index())[1]
    return {"fired": found, "text_only": text_only}


@command
def recall_failure(vault: Vault, caller: Caller, output: str, command: str = "") -> dict[str, Any]:
    """Return what an agent would get for a command that failed with this output: as `recall` does."""
    return failure_recalled(vault, caller, failure.read(command, output))


def failure_recalled(vault: Vault, caller: Caller, what: Failure) -> dict[str, Any]:
    """Return the same for a failure; the index is brought up to date, the floor fitted if need be."""
    caller.index(vault, or_stale=True)
    if failures.load(vault) is None:
        failures.fit(vault, caller.progress_of("fitting the error floor"))
    return _injected(failed.select_lesson(vault, what))


@question
def live(vault: Vault, query: Query) -> dict[str, Any]:
    """Return the answers to `find` and, for the same text, to `recall`.

    For each key that somebody types: the second takes the vector and the matches of the first.
    """
    found = _found(vault, query)
    return {"search": found, "recall": _recalled(vault, query.text)}


@question
def hook(
    vault: Vault, event: dict[str, Any], ms: float, until: float, from_files: bool = False
) -> dict[str, Any] | None:
    """Answer a hook event: return what the agent's hook prints, None for silence.

    `ms` is how long the hook has taken so far, `until` the monotonic time at which it gives up;
    `from_files` asks no index.
    """
    return respond.respond(vault, event, by="watcher", ms=ms, until=until, from_files=from_files)
