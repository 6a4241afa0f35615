"""The questions that search: hits for a text, with what people or only programs need of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from vault_index.api.question import Caller, command, question
from vault_index.retrieval.hit import HITS, ContextBlock, HitList, Query

if TYPE_CHECKING:
    from vault_index.index import classifier
    from vault_index.retrieval import duplicates
    from vault_index.retrieval.query import Results
    from vault_index.text.failure import Failure
    from vault_index.vault import Vault


@dataclass(frozen=True, slots=True)
class SearchHealth:
    """Whether a vault can be searched: a search, rows of the `tables` by name, how many `lessons`.

    `degraded_since` is since when words alone are searched because the embedder is away, "" if it is
    not. Vectors of `lacking` files are still to be made.
    """

    searched: HitList
    tables: dict[str, int]
    lessons: int
    degraded_since: str
    lacking: int = 0


@question
def find(vault: Vault, query: Query) -> HitList:
    """Find lessons and skills, with the floors in force."""
    return found(vault, query)


def found(vault: Vault, query: Query, *, only_trusted: bool = False) -> HitList:
    """Return the same, `only_trusted` as the user's settings say for agents."""
    from vault_index.retrieval import entries, floor

    k = query.k or vault.config.search.hits or HITS
    wanted = replace(query, k=k, weighted=True, phrases=True)
    results = _all_hits(vault, wanted, only_trusted=only_trusted)
    if query.for_agent and not results.hits and "lessons" in query.kinds:
        entries.refuse_unknown(vault, query.categories)
    document, text_only = results.document, bool(results.text_only)
    floors = floor.in_force(vault, query.text, text_only=text_only)
    return replace(
        _listed(vault, results),
        dropped=tuple(results.dropped),
        place=f"{document.title} ({document.path})" if document else "",
        floor=floors.line if floors else None,
        whole_floor=floors.whole if floors else None,
        skills_floor=floor.for_skills(vault, text_only=text_only),
    )


def _all_hits(vault: Vault, wanted: Query, *, only_trusted: bool) -> Results:
    """Return the hits of a search, of the vaults above as well: up to `k` lessons, then skills."""
    from vault_index.recall import allowed
    from vault_index.retrieval import floor, query

    results = query.every_kind(vault, wanted)
    if only_trusted:
        results = replace(results, hits=allowed.only_trusted(vault, results.hits))
        results = floor.with_above(vault, wanted, results, allowed.only_trusted)
    else:
        results = floor.with_above(vault, wanted, results)
    lessons = [hit for hit in results.hits if hit.kind == "lessons"][: wanted.k]
    return replace(results, hits=lessons + [hit for hit in results.hits if hit.kind != "lessons"])


def _listed(vault: Vault, results: Results) -> HitList:
    embedder = None if results.text_only else vault.embedder
    model = embedder.name if embedder else ""
    return HitList(
        tuple(results.hits),
        text_only=results.text_only,
        embedder=vault.config.embedder,
        model=model,
        unquoted=results.unquoted,
    )


@question
def health(vault: Vault) -> SearchHealth:
    """Search once, and count. Raises as a search does."""
    from vault_index import status
    from vault_index.retrieval import query

    vault.query_vectors = {}  # else the vector of the last time would answer for a model that is away
    listed = _listed(vault, query.every_kind(vault, Query("is anybody there", 1)))
    opened = vault.open_index()
    tables = {
        table.schema.table: table.count() if table.exists() else 0
        for table in (opened.store, opened.documents, opened.skills)
    }
    why = listed.text_only
    if opened.unmade:  # which is no trouble while the embedder answers
        why = query.why_away(vault)
        listed = replace(listed, text_only=why or listed.text_only)
    since = status.degraded(vault, is_now=bool(why) and listed.embedder != "none")
    return SearchHealth(listed, tables, opened.lessons, since, opened.lacking)


@question
def compare(vault: Vault, paths: Sequence[str]) -> duplicates.IndexFindings:
    """Compare lesson files with the index.

    `paths` are relative to the vault's folder. The findings are near-duplicates and prompts of a
    lesson's own that find another one first, or fire it, too.
    """
    from vault_index.retrieval import duplicates, rivals

    compared = duplicates.against_index(vault, paths)
    return replace(compared, findings=(*compared.findings, *rivals.findings(vault, paths)))


@question
def classify(vault: Vault) -> tuple[classifier.ProbableCategories, ...]:
    """Propose categories for the lessons without any."""
    from vault_index.index import classifier

    return tuple(classifier.propose(vault))


@question
def recall(vault: Vault, query: str, project: str = "") -> ContextBlock:
    """Return the block that an agent would get for a prompt; `project` is the folder the agent is in."""
    from vault_index.recall import select

    return select.for_prompt(vault, query, project=Path(project) if project else None)


@dataclass(frozen=True, slots=True)
class TaughtLesson:
    """A lesson that agents may get; `prompts` fire it, and `digest` is another after any change."""

    id: str
    title: str
    digest: str
    prompts: tuple[str, ...]


@question
def taught_lessons(vault: Vault) -> tuple[TaughtLesson, ...]:
    """List the lessons that agents may get, with what was taught."""
    from vault_index.lesson.file import hash_of
    from vault_index.store import filters

    where = filters.all_of(filters.WHOLE, filters.FOR_AGENTS)
    columns = ("lesson_id", "title", "text", "fires_on", "silent_on")
    lessons = []
    for row in vault.open_index().store.rows(columns, where):
        fires, silent = tuple(row["fires_on"] or ()), tuple(row["silent_on"] or ())
        digest = hash_of(row["title"], row["text"], *fires, "", *silent)
        lessons.append(TaughtLesson(row["lesson_id"], row["title"], digest, fires))
    return tuple(lessons)


@dataclass(frozen=True, slots=True)
class Fired:
    """The ids of the lessons that an agent would get, by prompt; `text_only` is as in a HitList."""

    lessons: Mapping[str, tuple[str, ...]]
    text_only: str


@question
def fired(vault: Vault, prompts: Sequence[str]) -> Fired:
    """Return which lessons an agent would get for each prompt."""
    from vault_index.recall import select
    from vault_index.retrieval import query

    found = {
        prompt: tuple(hit.lesson_id for hit in select.for_prompt(vault, prompt).hits)
        for prompt in prompts
    }
    return Fired(found, query.embedder_for(vault, vault.open_index())[1])


@command
def recall_failure(vault: Vault, caller: Caller, output: str, command: str = "") -> ContextBlock:
    """Return the block that an agent would get for a command that failed with this output."""
    from vault_index.text import failure

    return failure_recalled(vault, caller, failure.read(command, output))


def failure_recalled(vault: Vault, caller: Caller, what: Failure) -> ContextBlock:
    """Return the same for a failure; the index is brought up to date."""
    from vault_index.recall import respond

    caller.index(vault, or_stale=True)
    return respond.for_failure(vault, what)


@dataclass(frozen=True, slots=True)
class Typed:
    """The answers to `find` and, for the same text, to `recall`."""

    search: HitList
    recall: ContextBlock


@question
def live(vault: Vault, query: Query) -> Typed:
    """Return both for each key that somebody types: the second takes the vector of the first."""
    from vault_index.recall import select

    return Typed(found(vault, query), select.for_prompt(vault, query.text))
